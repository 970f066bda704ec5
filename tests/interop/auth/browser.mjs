// A person with a browser: `login URL NAME` opens an authorization URL, logs in, consents, and ends where the redirect goes to;
// `device URL NAME CODE` enters a user code before that. With `--deny` the person presses "Cancel" instead of consenting.
//
// Prints the text of the last page. What cannot be done within its time is an error, with the page on standard error.

import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';

import { chromium } from 'playwright-core';

/** Milliseconds for one step, and for all of them. */
const STEP = 15_000;
const LIMIT = 60_000;

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { deny: { type: 'boolean', default: false } },
});
const [task, url, name, code] = positionals;
if (!['login', 'device'].includes(task) || !name || (task === 'device') !== (code !== undefined)) {
  console.error('login URL NAME, or device URL NAME CODE');
  process.exit(2);
}
setTimeout(() => {
  console.error(`not done within ${LIMIT} ms`);
  process.exit(1);
}, LIMIT).unref();

const browser = await chromium.launch({
  executablePath: findChromium(),
  // Chromium has no sandbox for root, and little shared memory in containers.
  args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  timeout: STEP,
});
const page = await browser.newPage();
page.setDefaultTimeout(STEP);
// The pages name fonts of other hosts. Nothing but this machine is to be reached.
await page.route('**', (route) => {
  return new URL(route.request().url()).hostname === '127.0.0.1' ? route.continue() : route.abort();
});
let failed = false;
try {
  await page.goto(url);
  for (const step of [enterCode, confirmDevice, logIn, consent]) await step();
  console.log(await page.innerText('body'));
} catch (error) {
  failed = true;
  console.error(`${error}\nat ${page.url()}\n${await page.content().catch(() => 'no page')}`);
}
await browser.close();
process.exit(failed ? 1 : 0);

async function enterCode() {
  if (task !== 'device') return;
  // With a complete verification address the code is there already, and the page goes on by itself.
  if (!(await shows('input[name=user_code]'))) return;
  await page.fill('input[name=user_code]', code);
  await press('button[type=submit]');
}

/** The person compares the code with the one that the device shows. */
async function confirmDevice() {
  if (task !== 'device') return;
  const shown = await page.innerText('body');
  if (!shown.includes(code)) throw new Error(`the page does not show the code ${code}`);
  await press('button[type=submit]');
}

async function logIn() {
  if (!(await shows('input[name=login]'))) return;
  await page.fill('input[name=login]', name);
  await page.fill('input[name=password]', 'anything');
  await press('button[type=submit]');
}

async function consent() {
  if (!(await shows('input[name=prompt][value=consent]'))) return;
  await press(options.deny ? 'a:has-text("Cancel")' : 'button[type=submit]');
}

async function shows(selector) {
  return (await page.locator(selector).count()) > 0;
}

/** Presses a button, and waits for the page that comes of it. */
async function press(selector) {
  const before = await page.locator('html').elementHandle();
  await page.click(selector);
  await before.waitForElementState('hidden', { timeout: STEP }).catch(() => {});
  await page.waitForLoadState('load');
}

function findChromium() {
  const folders = (process.env.PATH ?? '').split(':');
  for (const program of ['chromium', 'chromium-browser', 'google-chrome']) {
    const path = folders.map((folder) => `${folder}/${program}`).find(existsSync);
    if (path) return path;
  }
  throw new Error('there is no chromium (Debian: apt-get install chromium)');
}
