package evaluation

import (
	_ "embed" // the template
	"fmt"
	"html/template"
	"io"

	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/page"
)

//go:embed page.tmpl
var pageText string

// Page writes an HTML page that loads nothing; it links to the reports of the runs that were kept.
func (r Report) Page(w io.Writer) error {
	functions := template.FuncMap{"marked": page.Codes, "words": format.ShellWords}
	t, err := template.New("page").Funcs(functions).Parse(pageText)
	if err != nil {
		return fmt.Errorf("parsing the template of the page: %w", err)
	}
	return t.Execute(w, r)
}
