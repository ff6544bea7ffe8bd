import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Terraform on this machine, or nothing. */
export function findTerraform(path = process.env.PATH ?? ''): string | undefined {
  return path
    .split(delimiter)
    .map((folder) => join(folder, 'terraform'))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

export type Outcome = { readonly code: number; readonly stdout: string; readonly stderr: string };

export type Terraform = {
  /** Runs a command; its exit code is an answer, as the 2 of `plan -detailed-exitcode`. */
  run(...args: readonly string[]): Promise<Outcome>;
};

/** Longest for one command. `test` plans more than a hundred times, which takes minutes where others use the machine. */
const timeoutMs = 600_000;

/** Terraform in a folder, with providers that run already and without registry, settings of the user or a call home. */
export function terraformIn(binary: string, folder: string, env: Readonly<Record<string, string>>): Terraform {
  return {
    run: (...args) =>
      new Promise((resolve, reject) => {
        const child = spawn(binary, args, {
          cwd: folder,
          env: {
            PATH: process.env.PATH,
            HOME: process.env.HOME,
            TF_CLI_CONFIG_FILE: '/dev/null',
            CHECKPOINT_DISABLE: '1',
            TF_IN_AUTOMATION: '1',
            ...env,
          },
          stdio: ['ignore', 'pipe', 'pipe'],
          timeout: timeoutMs,
        });
        let stdout = '';
        let stderr = '';
        child.stdout.on('data', (chunk: Buffer) => {
          stdout += chunk;
        });
        child.stderr.on('data', (chunk: Buffer) => {
          stderr += chunk;
        });
        child.once('error', reject);
        child.once('close', (code) => resolve({ code: code ?? 1, stdout, stderr }));
      }),
  };
}
