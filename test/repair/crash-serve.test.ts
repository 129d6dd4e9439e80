/**
 * The API killed at each of its crash points, in each request that passes it, one after the other on the same stores;
 * then started again, once, and all that they left is repaired together.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { serveFlows } from './flows-serve.ts';
import {
  closeStage,
  die,
  expectRepaired,
  expectSound,
  openStage,
  repair,
  type Flow,
  type Scene,
  type Stage,
} from './scene.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => closeStage(stage));

const scenes = new Map<Flow, Scene>();

test.each(serveFlows)('dies at $point: $doing', { timeout: 60_000 }, async (flow) => {
  scenes.set(flow, await die(flow, stage, `sale-${serveFlows.indexOf(flow)}`));
});

test('started again, all of it is repaired', { timeout: 90_000 }, async () => {
  expect(scenes.size).toBe(serveFlows.length);
  await repair(
    ['serve'],
    stage,
    [...scenes].filter(([{ again }]) => again !== false),
  );
  await expectSound(stage);
});

test.each(serveFlows)('in the end, $point: $doing', async (flow) => {
  const scene = scenes.get(flow);
  if (!scene) throw new Error('it did not die');
  await expectRepaired(flow, scene);
});
