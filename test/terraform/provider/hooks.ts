import type { Cloud } from './cloud.ts';
import type { Values } from './values.ts';

/**
 * Makes the real thing beside what the provider keeps. What it throws is an error of Terraform's apply; attributes that it resolves to are
 * known from then on, as `{ service_config: [{ uri }] }`.
 */
export type Hook = {
  create?(values: Values, cloud: Cloud): Promise<Values | undefined>;
  /** False: it is gone, and Terraform plans to make it again. */
  isThere?(values: Values, cloud: Cloud): Promise<boolean>;
  update?(values: Values, before: Values, cloud: Cloud): Promise<Values | undefined>;
  delete?(values: Values, cloud: Cloud): Promise<void>;
};

/** By resource type, as `google_pubsub_topic`. */
export type Hooks = Readonly<Record<string, Hook>>;
