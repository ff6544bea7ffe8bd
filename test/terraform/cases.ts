import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Resource } from './provider/cloud.ts';

/** One deployment: a root module and what it is told. */
export type Case = {
  readonly name: string;
  /** Below the tree, with `/`; `.` for its own root. */
  readonly folder: string;
  readonly variables: Readonly<Record<string, unknown>>;
  /** What the project held before. */
  readonly existing?: readonly Resource[];
};

export const projectId = 'my-project-1';
const everyFeature = { dedup: true, delay: true, fifo: true, observability: true };

/** The root with what changes most, and every example as it stands. */
export function casesOf(root: string): readonly Case[] {
  const project = { project_id: projectId };
  const examples = existsSync(join(root, 'examples')) ? readdirSync(join(root, 'examples'), { withFileTypes: true }) : [];
  return [
    { name: 'defaults', folder: '.', variables: project },
    everyFeatureCase,
    { name: 'redis', folder: '.', variables: { ...project, dedup_backend: 'redis' } },
    handlerLessCase,
    { name: 'valkey', folder: '.', variables: { ...project, dedup_backend: 'valkey' } },
    ...examples
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => ({ name: `examples/${name}`, folder: `examples/${name}`, variables: project })),
  ];
}

/** What carries the traffic of tier C and the planted faults. */
export const everyFeatureCase: Case = {
  name: 'every feature',
  folder: '.',
  variables: { project_id: projectId, features: everyFeature },
};

/** Tasks that publish by themselves, to a topic of a message's own choice too. */
export const handlerLessCase: Case = {
  name: 'handler-less',
  folder: '.',
  variables: {
    project_id: projectId,
    features: { dedup: false, delay: true },
    delay: { mode: 'handler-less', target_topics: ['reminders'] },
  },
  existing: [{ type: 'google_pubsub_topic', values: { project: projectId, name: 'reminders' } }],
};
