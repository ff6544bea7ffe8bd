import type { Log } from '../shared/ports.ts';

const levels = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof levels)[number];

/**
 * One JSON line an event, in the fields that Cloud Logging reads.
 * @param projectId whose traces a `traceId` belongs to: then the line stands beside its trace
 */
export function lineLog(write: (line: string) => void, least: LogLevel = 'info', projectId?: string): Log {
  const at = (level: LogLevel) => (fields: object, text: string) => {
    if (levels.indexOf(level) < levels.indexOf(least)) return;
    const severity = level === 'warn' ? 'WARNING' : level.toUpperCase();
    write(`${JSON.stringify({ severity, message: text, ...traced(fields, projectId) })}\n`);
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

function traced(fields: object, projectId: string | undefined): object {
  const { traceId, ...rest } = fields as { readonly traceId?: unknown };
  if (!projectId || typeof traceId !== 'string') return fields;
  return { ...rest, 'logging.googleapis.com/trace': `projects/${projectId}/traces/${traceId}` };
}
