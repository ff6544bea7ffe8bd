import type { Log } from '../shared/ports.ts';

const levels = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof levels)[number];

/** One JSON line an event, in the fields that Cloud Logging reads. */
export function lineLog(write: (line: string) => void, least: LogLevel = 'info'): Log {
  const at = (level: LogLevel) => (fields: object, text: string) => {
    if (levels.indexOf(level) < levels.indexOf(least)) return;
    write(`${JSON.stringify({ severity: level === 'warn' ? 'WARNING' : level.toUpperCase(), message: text, ...fields })}\n`);
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}
