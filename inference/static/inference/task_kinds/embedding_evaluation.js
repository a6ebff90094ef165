// An evaluation of an embedder: the confusion of the classes that neighbours name. All else stands in the page.
import { drawConfusion } from "../confusion.js";

drawConfusion(JSON.parse(document.getElementById("evaluation-data").textContent).confusion);
