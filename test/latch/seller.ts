/** One API process of several on one gate: forked by processes.ts. Sends its address when it listens. */
import { pino } from 'pino';
import { readConfig } from '../../src/config.ts';
import { buildApp } from '../../src/http/app.ts';
import { wire } from '../../src/wiring.ts';

const config = readConfig(process.env);
const logger = pino({ level: 'fatal' });
const { app, directory } = await buildApp({ ...wire(config, logger), config, logger });
await directory.start(config.SALES_REFRESH_MS);
process.send?.(await app.listen({ host: '127.0.0.1', port: 0 }));
process.once('disconnect', () => process.exit(0));
