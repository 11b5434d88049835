// How the dashboard is built: hashed names, files stored compressed, and the size of the first load printed.
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

/** Limits for the files that load before a page is shown, gzipped. */
const LIMITS = { "index.html": 180 * 1024, "docs.html": 500 * 1024 };
const server = process.env.STEPWELL_URL ?? "http://127.0.0.1:7070";

/** Replaces compressible files with their `.gz`, the only form the binary embeds, and measures the first load. */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    async closeBundle() {
      const dist = path.resolve("dist");
      const pages = Object.entries(LIMITS).map(async ([name, limit]) => {
        return { name, limit, html: await readFile(path.join(dist, name), "utf8") };
      });
      const read = await Promise.all(pages);
      const sizes = new Map<string, number>();
      for (const entry of await readdir(dist, { recursive: true, withFileTypes: true })) {
        const file = path.join(entry.parentPath, entry.name);
        if (!entry.isFile() || !/\.(js|css|html|svg)$/.test(file)) continue;
        const gzip = gzipSync(await readFile(file), { level: 9 });
        sizes.set(`/${path.relative(dist, file)}`, gzip.length);
        await writeFile(`${file}.gz`, gzip);
        await rm(file);
      }
      for (const { name, limit, html } of read) {
        const first = [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map((found) => found[1] ?? "");
        // The viewer of the reference is loaded by a script.
        const viewer = name === "docs.html" ? [...sizes.keys()].filter((file) => file.includes("rapidoc")) : [];
        const total = [`/${name}`, ...first, ...viewer].reduce((sum, file) => sum + (sizes.get(file) ?? 0), 0);
        console.log(`${name}: ${(total / 1024).toFixed(1)} KB gzipped at first load (limit ${limit / 1024} KB)`);
        if (total > limit) throw new Error(`the first load of ${name} is too large: load something lazily`);
      }
    },
  };
}

export default defineConfig({
  plugins: [react(), compressed()],
  // Nothing is inlined as data: the Content-Security-Policy allows scripts and styles from files only.
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 900,
    // The dashboard, and the reference of the API, which shares nothing with it.
    rollupOptions: { input: ["index.html", "docs.html"] },
  },
  test: { include: ["tests/**/*.test.ts", "src/**/*.test.ts"] },
  server: {
    proxy: {
      // The server accepts a cookie only from a page of its own host, so the proxy sends that origin.
      "^/(api|sign-in|docs|openapi.json|in|wh)(/|$)": {
        target: server,
        ws: true,
        changeOrigin: true,
        configure: (proxy) => {
          proxy.on("proxyReq", (request) => request.setHeader("origin", server));
          proxy.on("proxyReqWs", (request) => request.setHeader("origin", server));
        },
      },
    },
  },
});
