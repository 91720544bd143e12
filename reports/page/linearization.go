package page

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
)

// Parts of porcupine's page, which has its data in the middle of its script.
const (
	scriptBegins = "<script>"
	dataBegins   = "const data = "
	dataEnds     = "\n\n      render(data)"
	scriptEnds   = "</script>"
)

// errOtherPage reports that porcupine writes another page than it did.
var errOtherPage = errors.New("porcupine's page does not have the expected script")

// WriteLinearization is [checker.WriteLinearization], with the data of the page in an element of its own, before the
// script: so the script is the same in all pages, and a Content-Security-Policy can name it.
func WriteLinearization(w io.Writer, h *history.History, j checker.Judgement) error {
	var b bytes.Buffer
	if err := checker.WriteLinearization(&b, h, j); err != nil {
		return err
	}
	before, script, data, after, err := splitLinearization(b.String())
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, before+`<script type="application/json" id="data">`+data+scriptEnds+"\n    "+scriptBegins+
		script+scriptEnds+after)
	return err
}

// splitLinearization separates the data from the script of a page of porcupine. encoding/json has escaped the data for
// HTML.
func splitLinearization(page string) (before, script, data, after string, err error) {
	before, rest, hasScript := strings.Cut(page, scriptBegins)
	i := strings.Index(rest, "\n      "+dataBegins)
	j := strings.LastIndex(rest, dataEnds)
	k := strings.LastIndex(rest, scriptEnds)
	if !hasScript || i < 0 || j < i || k < j {
		return "", "", "", "", errOtherPage
	}
	i += len("\n      " + dataBegins)
	script = rest[:i] + `JSON.parse(document.getElementById("data").textContent)` + rest[j:k]
	return before, script, rest[i:j], rest[k+len(scriptEnds):], nil
}

// Scripts are the hashes of the scripts of the pages of a run, as in a Content-Security-Policy.
func Scripts() ([]string, error) {
	script, err := templates.ReadFile("templates/page.js")
	if err != nil {
		return nil, fmt.Errorf("reading the page script: %w", err)
	}
	h, err := history.ReadAll(strings.NewReader(`{"index":0,"time":1,"type":"invoke","process":0,"f":"acquire","key":"k"}
{"index":1,"time":2,"type":"ok","process":0,"f":"acquire","key":"k"}
`), "an example")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := checker.WriteLinearization(&b, h, checker.Judge(h, checker.Options{})); err != nil {
		return nil, err
	}
	_, linear, _, _, err := splitLinearization(b.String())
	return []string{hashOf(script), hashOf([]byte(linear))}, err
}
