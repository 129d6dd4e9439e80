/** A keeper as it is, in a process of its own, until its parent says that it is enough. */
import { readConfig } from '../../src/config.ts';
import { startKeeper } from '../../src/keeper/keeper.ts';
import { createLogger, keeperOptions, wire } from '../../src/wiring.ts';

const config = readConfig({ ...process.env, LOG_LEVEL: 'warn' });
const { stores, sqs, leases, connected, close } = wire(config, createLogger(config));
await connected();
const keeper = startKeeper({ stores, sqs, leases, provider: undefined }, keeperOptions(config));
process.send?.('started');
process.once('disconnect', () => void keeper.stop().then(close));
