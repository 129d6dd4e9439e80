/** The command line: one line per command; each loads only what it needs. */
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { keepShortLivedYoung } from './heap.ts';

keepShortLivedYoung();

const WRONG_USAGE = 64;
let exitCode = 0;

const program = new Command('flashgate')
  .description('Reservations for flash sales: a gate that says no for almost nothing, a ledger that never oversells.')
  .configureHelp({ showGlobalOptions: true })
  .exitOverride()
  .addHelpText(
    'after',
    '\nSettings come from the environment: see .env.example. Exit codes: 0 good, 1 failed, 64 wrong usage.',
  );

/** A command whose number becomes the exit code. */
const run =
  <A extends unknown[]>(action: (...args: A) => Promise<number>) =>
  async (...args: A): Promise<void> => {
    exitCode = await action(...args);
  };

const serve = () => import('./commands/serve.ts');
const long = () => import('./commands/run.ts');
const once = () => import('./commands/once.ts');

program
  .command('serve')
  .description('the API, until SIGTERM')
  .action(run(async () => (await serve()).serveCommand()));
program
  .command('work')
  .description('the worker: drains the queue into the ledger')
  .action(run(async () => (await long()).workCommand()));
program
  .command('keep')
  .description('the keeper: sweeps, sends again, refunds')
  .action(run(async () => (await long()).keepCommand()));
program
  .command('up')
  .description('all of it in one process, with a stand-in payment provider and a sample sale')
  .action(run(async () => (await import('./commands/up.ts')).upCommand()));
program
  .command('migrate')
  .description('bring the database’s schema up to date')
  .action(run(async () => (await once()).migrateCommand()));
program
  .command('sweep')
  .description('expire what is due and give its units back')
  .requiredOption('--once', 'one pass, for cron (exit 1 when something must wait for the gate)')
  .action(run(async () => (await once()).sweepCommand()));
program
  .command('reconcile')
  .description('compare gate and ledger whole, and make them agree')
  .requiredOption('--once', 'one pass')
  .option('--sale <id>', 'one sale only')
  .action(run(async ({ sale }: { sale?: string }) => (await once()).reconcileCommand(sale)));
program
  .command('rebuild')
  .description('load a lost gate from the ledger; a live one is left alone')
  .requiredOption('--sale <id>', 'the sale')
  .action(run(async ({ sale }: { sale: string }) => (await once()).rebuildCommand(sale)));
program
  .command('dead-letters')
  .description('list the dead-letter queue; exit 1 when it has messages that cannot be read')
  .option('--replay', 'send those that can be read back to the queue', false)
  .option('--limit <n>', 'messages at most', whole, 1000)
  .action(run(async (options: { replay: boolean; limit: number }) => (await once()).deadLettersCommand(options)));
program
  .command('audit')
  .description('read both stores, recompute, compare. Exit 0 all holds, 2 something does not, 3 could not judge')
  .option('--sale <id>', 'one sale only')
  .option('--report <file>', 'write the findings there as JSON')
  .option('--settle <seconds>', 'count only what is still there after this time (on a running system)')
  .action(run(async (options: object) => (await import('./audit/command.ts')).auditCommand(options, process.env)));

const sale = program.command('sale').description('create and look after sales');
sale
  .command('create <id>')
  .description('create a sale, or change it to these whole settings')
  .requiredOption('--total <n>', 'units', whole)
  .option('--name <text>', 'what is sold', 'Flash sale')
  .option('--starts-at <time>', 'RFC 3339', new Date().toISOString())
  .requiredOption('--ends-at <time>', 'RFC 3339')
  .option('--hold-seconds <s>', 'how long a hold lasts', whole, 600)
  .option('--max-per-reservation <n>', 'units per reservation', whole, 1)
  .requiredOption('--amount <n>', 'price of one unit, in minor units', whole)
  .requiredOption('--currency <code>', 'ISO 4217')
  .action(run(async (id: string, options: SaleOptions) => (await once()).saleCreateCommand(id, options)));
sale
  .command('list')
  .description('all sales')
  .action(run(async () => (await once()).saleListCommand()));
sale
  .command('show <id>')
  .description('settings, gate and ledger')
  .action(run(async (id: string) => (await once()).saleShowCommand(id)));
sale
  .command('pause <id>')
  .description('nobody wins until it is resumed')
  .action(run(async (id: string) => (await once()).saleStateCommand(id, 'paused')));
sale
  .command('resume <id>')
  .description('open it again')
  .action(run(async (id: string) => (await once()).saleStateCommand(id, 'open')));
sale
  .command('end <id>')
  .description('end it for good; holds may still be paid')
  .action(run(async (id: string) => (await once()).saleStateCommand(id, 'ended')));
sale
  .command('resize <id>')
  .description('change the total; refused below what is held or sold')
  .requiredOption('--total <n>', 'units', whole)
  .action(run(async (id: string, { total }: { total: number }) => (await once()).saleResizeCommand(id, total)));

// Whoever reads our output may stop reading: `| head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(exitCode);
});

async function main(): Promise<void> {
  // The rush's options are a table of its own, wanted for its help; nothing else waits for it.
  if (
    process.argv[2] === 'rush' ||
    process.argv[2] === 'help' ||
    process.argv.length < 3 ||
    process.argv.includes('--help')
  ) {
    const { rushCommand, rushOptions } = await import('./rush/command.ts');
    const rush = program
      .command('rush')
      .description('buyers storm a sale over real HTTP; what they were told is compared with the ledger');
    for (const option of rushOptions) rush.addOption(option);
    rush.action(run(async (options: Record<string, unknown>) => rushCommand(options, process.env)));
  }
  try {
    await program.parseAsync();
  } catch (error) {
    if (error instanceof CommanderError) exitCode = error.exitCode === 0 ? 0 : WRONG_USAGE;
    else {
      process.stderr.write(`flashgate: ${error instanceof Error ? error.message : String(error)}\n`);
      exitCode = 1;
    }
  }
}
type SaleOptions = import('./commands/once.ts').SaleOptions;

function whole(text: string): number {
  if (!/^\d{1,12}$/.test(text)) throw new InvalidArgumentError('a whole number is expected');
  return Number(text);
}

await main();
process.exitCode = exitCode;
// An API process that could not start: its channel to the first one would keep it, and nobody would be told.
if (process.connected) process.exit();
