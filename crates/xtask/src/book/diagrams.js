// Draws the diagrams, which mdBook renders as code. Pages without a diagram do not load the library.
const codes = document.querySelectorAll("code.language-mermaid");
if (codes.length > 0) {
    const library = document.createElement("script");
    library.src = path_to_root + "mermaid.min.js";
    library.onload = () => {
        for (const code of codes) {
            const diagram = document.createElement("pre");
            diagram.className = "mermaid";
            diagram.textContent = code.textContent;
            code.closest("pre").replaceWith(diagram);
        }
        const dark = ["navy", "coal", "ayu"].some((name) => document.documentElement.classList.contains(name));
        mermaid.initialize({ startOnLoad: false, theme: dark ? "dark" : "default" });
        mermaid.run();
    };
    document.body.append(library);
}
