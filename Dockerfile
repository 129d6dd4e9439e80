# One image for every process of flashgate: the command says which. TypeScript runs as it is, there is no build step.
FROM node:24-slim AS dependencies

WORKDIR /app
# Install scripts are left out: the only one that matters would fetch the Node.js that this image brings itself.
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts

FROM node:24-slim

WORKDIR /app
# Owned by root and written by nobody: the file system may be mounted read-only.
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json LICENSE ./
COPY lua ./lua
COPY migrations ./migrations
COPY src ./src

USER node
ENV NODE_ENV=production HOST=0.0.0.0 METRICS_PORT=9090
EXPOSE 3000 9090
# Of serve, work and keep. A process that is draining is not ready, and is not killed for it: that is the deadline's part.
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:9090/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "src/main.ts"]
CMD ["serve"]
