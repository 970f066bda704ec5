// Runs the exchange: in one module without imports, and between two modules on WASI in processes of their own, whose output is the
// input of the other. A panic is a trap, and ends this with an error.
//
//   node run.mjs UNKNOWN.wasm WASI.wasm
//   node run.mjs --wasi WASI.wasm ARGUMENTS    (what it starts)

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const compile = async (path) => WebAssembly.compile(await readFile(path));

function start(...args) {
  const script = fileURLToPath(import.meta.url);
  const child = spawn(process.execPath, ['--no-warnings', script, '--wasi', ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  // The other one may have ended before everything was written to it.
  child.stdin.on('error', () => {});
  return child;
}

async function exchange(path, revision) {
  const [client, server] = [start(path, 'client', revision), start(path, 'server')];
  let messages = 0;
  for (const [from, to] of [[client, server], [server, client]]) {
    from.stdout.on('data', (text) => { messages += text.toString('latin1').split('\n').length - 1; });
    from.stdout.pipe(to.stdin);
  }
  const statuses = await Promise.all([client, server].map((child) => once(child, 'exit')));
  for (const [status] of statuses) {
    if (status !== 0) throw new Error(`${revision}: a module ended with ${status}`);
  }
  console.log(`${revision}: ${messages} messages between two modules`);
}

const [first, ...rest] = process.argv.slice(2);
if (first === '--wasi') {
  const { WASI } = await import('node:wasi');
  const [path, ...args] = rest;
  const wasi = new WASI({ version: 'preview1', args: [path, ...args], returnOnExit: true });
  const imports = { wasi_snapshot_preview1: wasi.wasiImport };
  process.exitCode = wasi.start(await WebAssembly.instantiate(await compile(path), imports));
} else {
  const { exports } = await WebAssembly.instantiate(await compile(first));
  const status = exports.main(0, 0);
  if (status !== 0) throw new Error(`one module: main returned ${status}`);
  console.log('client and server in one module, without imports');
  for (const revision of ['2026-07-28', '2025-11-25']) await exchange(rest[0], revision);
}
