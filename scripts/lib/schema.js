// The schema as text, from Postgres' own catalogue: the same database gives the same text, on every machine.

const RELATIONS = `
  select c.oid, c.relname as name, array_to_string(c.reloptions, ', ') as options
  from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' order by c.relname`;

const COLUMNS = `
  select format('%I %s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
    case when a.attidentity = 'a' then ' generated always as identity'
         when d.adbin is not null then ' default ' || pg_get_expr(d.adbin, d.adrelid) else '' end,
    case when a.attnotnull then ' not null' else '' end) as text
  from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
  where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped order by a.attnum`;

// Not-null constraints are said with the column.
const CONSTRAINTS = `
  select format('constraint %I %s', conname, pg_get_constraintdef(oid)) as text
  from pg_constraint where conrelid = $1 and contype <> 'n' order by contype = 'p' desc, conname`;

const INDEXES = `
  select pg_get_indexdef(i.indexrelid) || ';' as text from pg_index i join pg_class c on c.oid = i.indexrelid
  where i.indrelid = $1 and not exists (select 1 from pg_constraint where conindid = i.indexrelid and conrelid = $1)
  order by c.relname`;

const TRIGGERS = `
  select pg_get_triggerdef(oid) || ';' as text from pg_trigger where tgrelid = $1 and not tgisinternal order by tgname`;

const COMMENTS = `
  select format('comment on %s %I%s is %L;', case objsubid when 0 then 'table' else 'column' end, c.relname,
    case objsubid when 0 then '' else '.' || quote_ident(a.attname) end, d.description) as text
  from pg_description d join pg_class c on c.oid = d.objoid
  left join pg_attribute a on a.attrelid = c.oid and a.attnum = d.objsubid
  where d.classoid = 'pg_class'::regclass and d.objoid = $1 order by objsubid`;

const FUNCTIONS = `
  select pg_get_functiondef(oid) || ';' as text from pg_proc where pronamespace = 'public'::regnamespace order by proname`;

/**
 * @param {{ query(sql: string, values?: unknown[]): Promise<{ rows: any[] }> }} client connected to the database
 * @returns {Promise<string>} tables with columns and constraints, indexes, triggers, comments, functions
 */
export async function dumpSchema(client) {
  const texts = async (sql, ...values) => (await client.query(sql, values)).rows.map(({ text }) => text);
  const parts = await texts(FUNCTIONS);
  for (const { oid, name, options } of (await client.query(RELATIONS)).rows) {
    const members = [...(await texts(COLUMNS, oid)), ...(await texts(CONSTRAINTS, oid))];
    const table = `create table ${name} (\n  ${members.join(',\n  ')}\n)${options ? ` with (${options})` : ''};`;
    const lines = [table];
    for (const sql of [INDEXES, TRIGGERS, COMMENTS]) lines.push(...(await texts(sql, oid)));
    parts.push(lines.join('\n'));
  }
  return `${parts.join('\n\n')}\n`;
}
