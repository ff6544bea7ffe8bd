import { readFileSync } from 'node:fs';
import { deadLetterRules } from './dead-letters.ts';
import { environmentRules } from './environment.ts';
import { identityRules } from './identities.ts';
import { type Definitions, indexRules } from './indexes.ts';
import { storeRules } from './stores.ts';
import { subscriptionRules } from './subscriptions.ts';
import type { Rule } from './world.ts';

const definitions = JSON.parse(readFileSync(new URL('../../../terraform/firestore.indexes.json', import.meta.url), 'utf8')) as Definitions;

/** What must hold of everything that was applied, whatever the variables were. */
export const rules: readonly Rule[] = [
  ...deadLetterRules,
  ...subscriptionRules,
  ...identityRules,
  ...environmentRules,
  ...storeRules,
  ...indexRules(definitions),
];
