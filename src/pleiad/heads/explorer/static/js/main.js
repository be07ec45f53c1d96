// Start: whoever is not known signs in; whoever is gets the rest of the page.
import { canSign } from "./client.js";
import { h, put } from "./dom.js";
import { forget, keyFor, signIn, stored, takeHandover } from "./session.js";
import { bar, chosenTheme, showTheme } from "./shell.js";
import { text } from "./texts.js";
import { plainHttp, signInScreen } from "../screens/signin.js";

const app = document.getElementById("app");
// What is behind the sign-in is fetched while somebody signs in, so that the form is there at once.
const rest = () => import("./explorer.js");

function showSignIn(problem) {
  app.className = "app bare";
  put(
    app,
    bar(app),
    h("main", { class: "main", id: "main", tabindex: "-1" }, canSign() ? signInScreen(enter, problem) : plainHttp()),
  );
  document.title = text.signIn.page;
  if (canSign()) setTimeout(rest);
}

async function enter(credential) {
  const [session, { Explorer }] = await Promise.all([signIn(credential), rest()]);
  await new Explorer(session).start();
}

async function start() {
  showTheme(chosenTheme());
  document.getElementById("skip").addEventListener("click", () => document.getElementById("main")?.focus());
  const token = takeHandover();
  if (!canSign()) {
    showSignIn();
    return;
  }
  try {
    if (token !== undefined) {
      await enter(await keyFor(token));
      return;
    }
    if (stored()) {
      await enter(stored());
      return;
    }
  } catch (error) {
    if (token === undefined && error.status === 401) forget();
    showSignIn(token === undefined ? error : { isOldLink: true, status: error.status, message: error.message });
    return;
  }
  showSignIn();
}
start();
