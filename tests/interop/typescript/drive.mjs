// Drives a fixture server with the official TypeScript client, revision by revision.
//
//     node drive.mjs [--revision R]... -- COMMAND [ARGUMENT]...    over stdio, one process for each connection
//     node drive.mjs [--revision R]... --url URL                   over HTTP; legacy clients have no sessions
//     node drive.mjs [--revision R]... --url URL --sessions        over HTTP; legacy clients have sessions

import { parseArgs } from 'node:util';
import * as legacy from './legacy.mjs';
import * as modern from './modern.mjs';
import { Report } from './report.mjs';
import { Server, killServers } from './wire.mjs';

/** Milliseconds after which the whole run has failed. */
const TOTAL = 120_000;

const every = [...legacy.REVISIONS, modern.REVISION];
const args = process.argv.slice(2);
const split = args.indexOf('--');
const command = split < 0 ? [] : args.slice(split + 1);
const { values } = parseArgs({
  args: split < 0 ? args : args.slice(0, split),
  options: { revision: { type: 'string', multiple: true }, url: { type: 'string' }, sessions: { type: 'boolean' } },
});
const revisions = values.revision ?? every;
const unknown = revisions.filter((revision) => !every.includes(revision));
if ((command.length === 0) === (values.url === undefined) || unknown.length > 0) {
  console.error('usage: node drive.mjs [--revision R]... -- COMMAND [ARGUMENT]... | --url URL [--sessions]');
  console.error(`revisions: ${every.join(' ')}`);
  process.exit(2);
}

const server = new Server({ command, url: values.url, hasSessions: values.sessions ?? false });
const report = new Report();

function finish() {
  killServers();
  if (report.failed) console.log(`${report.failed} checks failed`);
  console.log(`${report.passed} checks passed`);
  process.exit(report.failed || !report.passed ? 1 : 0);
}

setTimeout(() => {
  report.fail('total-time', `not done within ${TOTAL / 1000} s`);
  finish();
}, TOTAL);

for (const revision of revisions) {
  if (revision === modern.REVISION) await modern.drive(report, server);
  else await legacy.drive(report, server, revision);
}
if (revisions.includes(legacy.REVISIONS.at(-1))) await legacy.checkCounterOffer(report, server);
finish();
