import fc from 'fast-check';
import { expect } from 'vitest';
import { expectPermanent, fuzzing } from './fuzz-service.ts';
import type { Answer } from './wire-client.ts';

/** What a step chooses by, each below a thousand. */
export type Picks = readonly [number, number, number];
/** One call, or several, or time that passes; the last answer is judged. */
export type Steps = Readonly<Record<string, (picks: Picks) => Promise<Answer | undefined>>>;

export function picked<T>(from: readonly T[], pick: number): T {
  const chosen = from[pick % from.length];
  if (chosen === undefined) throw new Error('there is nothing to pick from');
  return chosen;
}

const length = 300;

/** Many calls one after the other on a few resources, each of which may meet whatever the ones before have left. */
export async function walks(steps: Steps, prepare: () => Promise<unknown>, alsoAllowed: readonly string[] = []): Promise<void> {
  const pick = fc.nat(999);
  const step = fc.record({ name: fc.constantFrom(...Object.keys(steps)), picks: fc.tuple(pick, pick, pick) });
  const property = fc.asyncProperty(fc.array(step, { minLength: length, maxLength: length, size: 'max' }), async (walk) => {
    await prepare();
    let answered = 0;
    for (const { name, picks } of walk) {
      const answer = await steps[name]?.(picks);
      if (!answer) continue;
      expectPermanent(answer, alsoAllowed);
      if (answer.code === 'OK') answered += 1;
    }
    // A walk that is refused at every turn would show nothing.
    expect(answered).toBeGreaterThan(length / 4);
  });
  await fc.assert(property, { ...fuzzing(2), numRuns: Number(process.env.FUZZ_WALKS ?? 2) });
}
