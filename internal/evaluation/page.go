package evaluation

import (
	_ "embed" // the template
	"fmt"
	"html/template"
	"io"

	"github.com/lockchaos/lockchaos/reports/page"
)

//go:embed page.tmpl
var pageText string

// Page writes an HTML page that loads nothing; it links to the reports of the runs that were kept.
func (r Report) Page(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{"marked": page.Codes}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("parsing the template of the page: %w", err)
	}
	return t.Execute(w, r)
}
