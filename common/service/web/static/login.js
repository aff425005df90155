// The printed address carries the token behind "#": browsers never send that part. It is taken out
// of the address before it is posted, so that it does not stay in the history.
"use strict";
function logIn() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(null, "", "/login");
  document.getElementById("token").value = token;
  document.getElementById("login").submit();
}
addEventListener("hashchange", logIn); // the address may be pasted while this page is open
logIn();
