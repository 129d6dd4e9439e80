// The local queue's process: `node queue-server.js FOLDER PORT` (port 0: any free one). The folder only marks the
// process in lists of processes. Prints its address when it listens, and ends when its standard input does.
//
// fauxqs is used as a library, since its command line listens on every network interface.
import { buildApp } from 'fauxqs';

const app = buildApp({ logger: false, defaultRegion: 'us-east-1' });
console.log(await app.listen({ host: '127.0.0.1', port: Number(process.argv[3]) }));
console.log('ready');

// Everything is in memory, so there is nothing to save: an immediate end is a clean one.
process.on('SIGTERM', () => process.exit(0));
process.stdin.on('end', () => process.exit(0)).resume();
