// configurable-http-proxy with two doors: what people's servers answer is shown at a port of its own, so that no script of theirs has the origin
// of the hub, of formgrader and of the board. Cookies know no ports: what a page of another origin asks for comes without them.
// JupyterHub starts it with configurable-http-proxy's own options, and one more: --doors.

import fs from "node:fs";
import net from "node:net";
import { parseArgs } from "node:util";
import { ConfigurableProxy } from "configurable-http-proxy";
import { defaultLogger } from "configurable-http-proxy/lib/log.js";

const NAMES = ["ip", "port", "api-ip", "api-port", "error-target", "log-level", "ssl-key", "ssl-cert", "doors"];
const { values: given } = parseArgs({ options: Object.fromEntries(NAMES.map((name) => [name, { type: "string" }])) });
const ssl = given["ssl-key"] && { key: fs.readFileSync(given["ssl-key"]), cert: fs.readFileSync(given["ssl-cert"]) };
const doors = JSON.parse(given.doors); // as `_doors` in settings.py makes it

function origins(req) {
  const scheme = ssl ? "https" : "http";
  const host = (req.headers.host || "").replace(/:\d+$/, "");
  const at = (address, port) => (address ? new URL(address).origin : `${scheme}://${host}:${port}`);
  return { hub: at(doors.names.hub, given.port), servers: at(doors.names.servers, doors.servers_port) };
}

class TwoOrigins extends ConfigurableProxy {
  async handleProxy(kind, req, res, ...rest) {
    const atServers = req.socket.localPort === doors.servers_port;
    let ofServer;
    try {
      ofServer = (await this.targetForReq(req))?.prefix.startsWith("/user/") ?? false;
    } catch {
      ofServer = atServers; // an address that nobody can read: the proxy itself says so
    }
    if (ofServer !== atServers) return this.elsewhere(kind, req, res, ofServer);
    this.distrust(req, atServers);
    return super.handleProxy(kind, req, res, ...rest);
  }

  elsewhere(kind, req, res, ofServer) {
    if (kind === "ws") return res.destroy();
    const { hub, servers } = origins(req);
    res.writeHead(307, { Location: (ofServer ? servers : hub) + req.url, "Cache-Control": "no-store" });
    res.end();
  }

  distrust(req, atServers) {
    const { hub, servers } = origins(req);
    const from = req.headers.origin;
    if (from && from !== (atServers ? servers : hub) && from.replace(/^\w+:\/\//, "") !== req.headers.host) delete req.headers.cookie;
    const forged = doors.behind.includes(req.socket.remoteAddress) ? /^x-real-ip$/ : /^(x-real-ip|x-forwarded-.*|forwarded|x-scheme)$/;
    for (const name of Object.keys(req.headers)) if (forged.test(name)) delete req.headers[name];
  }
}

const log = defaultLogger({ level: given["log-level"].toLowerCase() });
const proxy = new TwoOrigins({
  log,
  ssl,
  errorTarget: given["error-target"],
  authToken: process.env.CONFIGPROXY_AUTH_TOKEN,
  xfwd: true,
  prependPath: true,
});
proxy.proxyServer.listen(Number(given.port), given.ip);
proxy.apiServer.listen(Number(given["api-port"]), given["api-ip"]);
const servers = net.createServer((socket) => proxy.proxyServer.emit("connection", socket));
// as its own program does: a connection that breaks off at a bad moment may end as an error that nobody catches, and is nobody else's affair
servers.once("listening", () => process.on("uncaughtException", (error) => log.error(`Uncaught Exception: ${error.stack || error}`)));
servers.listen(doors.servers_port, given.ip);
