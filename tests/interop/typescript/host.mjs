// The application around the client: answers what servers ask, and remembers what they told.

export const SAMPLED = 'an answer of the interop model';
export const ROOTS = ['file:///interop/one', 'file:///interop/two'];

export class Host {
  logged = [];
  sampled = [];
  elicited = [];
  changed = [];
  rootsListed = 0;
  /** What the user does with the next forms. */
  action = 'accept';

  /** Gives the client handlers for the capabilities that it declared. */
  serve(client, capabilities) {
    if (capabilities.sampling) {
      client.setRequestHandler('sampling/createMessage', async ({ params }) => {
        this.sampled.push(params);
        return {
          role: 'assistant',
          content: { type: 'text', text: SAMPLED },
          model: 'interop-model',
          stopReason: 'endTurn',
        };
      });
    }
    if (capabilities.elicitation) {
      client.setRequestHandler('elicitation/create', async ({ params }) => {
        this.elicited.push(params);
        if (this.action !== 'accept') return { action: this.action };
        return { action: 'accept', content: filled(params.requestedSchema) };
      });
    }
    if (capabilities.roots) {
      client.setRequestHandler('roots/list', async () => {
        this.rootsListed += 1;
        return { roots: ROOTS.map((uri) => ({ uri, name: uri.slice(-3) })) };
      });
    }
    client.setNotificationHandler('notifications/message', ({ params }) => {
      this.logged.push(params);
    });
    for (const method of [
      'notifications/tools/list_changed',
      'notifications/prompts/list_changed',
      'notifications/resources/list_changed',
      'notifications/resources/updated',
    ]) {
      client.setNotificationHandler(method, ({ params }) => {
        this.changed.push(params?.uri === undefined ? method : `${method} ${params.uri}`);
      });
    }
  }
}

/** A form filled in: the default of each field, else something that can be recognised. */
export function filled(schema) {
  return Object.fromEntries(Object.entries(schema.properties).map(([name, field]) => [name, value(name, field)]));
}

function value(name, field) {
  if (field.default !== undefined) return field.default;
  if (field.type === 'array') return [field.items.enum ? field.items.enum[0] : field.items.anyOf[0].const];
  if (field.oneOf) return field.oneOf[0].const;
  if (field.enum) return field.enum[0];
  if (field.format === 'email') return 'interop@example.com';
  return { boolean: true, integer: 7, number: 1.5, string: `interop-${name}` }[field.type];
}
