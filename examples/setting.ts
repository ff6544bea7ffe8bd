import { rejectedDeadLetters } from 'pubsub-toolkit';

/** What the three examples share: names, a log, and what becomes of a message that can never be handled. */
export const projectId = 'ptk-example';
export const topic = 'orders';
export const subscription = 'orders';
export const finalTopic = 'due';
export const queue = `projects/${projectId}/locations/europe-west1/queues/delayed`;

const line = (level: string) => (fields: object, text: string) => console.error(level, text, JSON.stringify(fields));
export const log = { debug: () => {}, info: line('info'), warn: line('warn'), error: line('error') };
export const deadLetters = rejectedDeadLetters(log);
