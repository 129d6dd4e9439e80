# One image for every process of flashgate: the command says which. TypeScript runs as it is, there is no build step.
FROM node:24-slim

WORKDIR /app
# Install scripts are left out: the only one that matters would fetch the Node.js that this image brings itself.
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts

COPY lua ./lua
COPY migrations ./migrations
COPY src ./src

USER node
ENV NODE_ENV=production HOST=0.0.0.0
EXPOSE 3000
ENTRYPOINT ["node", "src/main.ts"]
CMD ["serve"]
