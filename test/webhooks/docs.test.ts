/** The receiver that docs/webhooks.md shows, run as it stands there but for its port. */
import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { applyEvent } from '../../src/ledger/payments.ts';
import { recordHolds } from '../../src/worker/record.ts';
import { docAt, ROOT } from '../docs/documents.ts';
import { event, newSale, win } from '../ledger/house.ts';
import { courier, endpointAt, openHouse, openReceiver, outbox, until, type House } from './house.ts';

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

const answers = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    }).on('error', () => resolve(false));
  });

test.each([
  ['with the endpoint’s secret it takes what comes', 204, 'DELIVERED'],
  ['with another it refuses', 401, 'PENDING'],
] as const)('%s', async (_, answered, status) => {
  const free = await openReceiver(); // a port, and then whoever listens at it
  await endpointAt(house, `shop-${answered}`, free);
  const port = Number(new URL(free.url).port);
  await free.close();
  const code =
    docAt('docs/webhooks.md')
      .blocks.find(({ language }) => language === 'js')
      ?.lines.join('\n') ?? '';
  expect(code).toContain('.listen(4000)');
  const secret = answered === 204 ? free.secret : `whsec_${Buffer.alloc(32).toString('base64')}`;
  const shop = spawn(process.execPath, ['--input-type=module', '-e', code.replace('4000', String(port))], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, SECRET: secret },
  });
  let said = '';
  for (const stream of [shop.stdout, shop.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (said += text));
  }
  const keeper = courier(house);
  try {
    await until(() => answers(port));
    const hold = await win(house, await newSale(house), 'u');
    await recordHolds(house.stores, [hold]);
    await applyEvent(house.pool, event(hold, 'payment.succeeded'));
    const row = async () => (await outbox(house)).find(({ endpoint }) => endpoint === `shop-${answered}`);
    await until(async () => ((await row())?.lastStatus ?? null) !== null);
    expect(await row(), said).toMatchObject({ status, lastStatus: answered });
    if (answered === 204) expect(said).toBe(`${hold.reservationId}_paid reservation.paid ${hold.reservationId}\n`);
  } finally {
    await keeper.stop();
    const ended = new Promise((resolve) => shop.once('exit', resolve));
    shop.kill('SIGKILL');
    await ended;
    await house.db.query('delete from webhook_endpoints; delete from webhook_deliveries');
  }
});
