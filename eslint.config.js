// Lint: typescript-eslint's strict rules with types, and the one direction in which the house imports.
import js from '@eslint/js';
import tseslint from 'typescript-eslint';

const STORES = ['gate', 'queue', 'ledger'];

/** Which folders of src/ each one may import from, besides itself. Files directly in src/ put the parts together. */
const MAY_IMPORT = {
  domain: [],
  gate: ['domain'],
  queue: ['domain'],
  ledger: ['domain'],
  operations: ['provider', ...STORES, 'domain'],
  http: ['operations', 'provider', ...STORES, 'domain'],
  worker: ['operations', ...STORES, 'domain'],
  keeper: ['operations', 'provider', ...STORES, 'domain'],
  provider: ['ledger', 'domain'],
  webhooks: ['operations', 'ledger', 'domain'],
  audit: [],
  client: [],
  rush: ['audit', 'client', 'domain'],
};

/** Files directly in src/ that know nothing of the product, or are types of settings: for any folder but these. */
const SHARED = '(batcher|config|crash|meter|reading|span).ts';
const ALONE = ['domain', 'audit', 'client'];

/** Clients of the stores belong to the folders that speak to them; elsewhere only their types may be named. */
const CLIENTS = ['pg', 'ioredis', '@aws-sdk/client-sqs'];
const SPEAKS_TO_STORES = [...STORES, 'audit'];

/** What scripts/ use of Node.js' globals. */
const NODE = [
  ...['AbortSignal', 'Buffer', 'URL', 'clearInterval', 'console', 'fetch', 'performance', 'process', 'setInterval'],
  'structuredClone',
];

/** What the pages' scripts use of a browser's. */
const BROWSER = [
  ...['Event', 'EventSource', 'FormData', 'URLSearchParams', 'clearTimeout', 'document', 'getComputedStyle'],
  ...['history', 'location', 'matchMedia', 'setTimeout', 'uPlot', 'addEventListener', 'ResizeObserver'],
];

const directions = Object.entries(MAY_IMPORT).flatMap(([folder, others]) => {
  const allowed = [...others.map((other) => `${other}/`), ...(ALONE.includes(folder) ? [] : [SHARED])].join('|');
  const paths = SPEAKS_TO_STORES.includes(folder)
    ? []
    : CLIENTS.map((name) => ({ name, message: 'Clients are made in wiring.ts.', allowTypeImports: true }));
  // A folder's own subfolders are part of it: from there it takes one step more to leave it.
  return ['', '../'].map((deeper) => {
    const outside = `^${deeper}../`.replaceAll('.', '\\.');
    return {
      files: [`src/${folder}/${deeper === '' ? '' : '*/'}*.ts`],
      rules: {
        '@typescript-eslint/no-restricted-imports': [
          'error',
          {
            paths,
            patterns: [
              {
                regex: allowed ? `${outside}(?!${allowed})` : outside,
                message: `src/${folder} imports from ${others.join(', ') || 'no other folder'} (eslint.config.js).`,
              },
            ],
          },
        ],
      },
    };
  });
});

export default tseslint.config(
  { ignores: ['node_modules/', '.flashgate/'] },
  js.configs.recommended,
  {
    files: ['**/*.js'],
    languageOptions: { globals: Object.fromEntries(NODE.map((name) => [name, 'readonly'])) },
  },
  {
    files: ['src/http/ops/assets/*.js'],
    languageOptions: { globals: Object.fromEntries(BROWSER.map((name) => [name, 'readonly'])) },
  },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allow: [{ from: 'lib', name: ['URL', 'URLSearchParams'] }] },
      ],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      eqeqeq: ['error', 'always', { null: 'ignore' }],
    },
  },
  ...directions,
  {
    // A part of src/http that is a client of the rest: it has the typed client, and no store.
    files: ['src/http/shop/*.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        { patterns: [{ regex: `^\\.\\./\\.\\./(?!client/|domain/|${SHARED})`, message: 'The shop calls the API.' }] },
      ],
    },
  },
  {
    // Pages: tsc knows what a browser has (src/http/shop/assets/tsconfig.json).
    files: ['src/http/shop/assets/*.js'],
    rules: { 'no-undef': 'off' },
  },
);
