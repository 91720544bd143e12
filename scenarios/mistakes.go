package scenarios

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/printer"
	"github.com/goccy/go-yaml/token"
)

// mistake is an error in a scenario, with its position in the text.
type mistake struct {
	file         string // that it is in; empty: none
	path         string // such as $.workload.clients; empty: only line and column are known
	line, column int    // 0: the key is missing
	message      string
	excerpt      string // the lines around it, with a caret
}

// Error is the message with its position.
func (m *mistake) Error() string {
	if m.line == 0 {
		return fmt.Sprintf("%s: %s: %s", cmp.Or(m.file, "scenario"), strings.TrimPrefix(m.path, "$."), m.message)
	}
	if m.file != "" {
		return fmt.Sprintf("%s:%d:%d: %s\n%s", m.file, m.line, m.column, m.message, m.excerpt)
	}
	return fmt.Sprintf("scenario: [%d:%d] %s\n%s", m.line, m.column, m.message, m.excerpt)
}

// mistakeAt is a mistake at a token of the text.
func mistakeAt(t *token.Token, format string, args ...any) *mistake {
	var p printer.Printer
	return &mistake{line: t.Position.Line, column: t.Position.Column, message: fmt.Sprintf(format, args...),
		excerpt: strings.TrimRight(p.PrintErrorToken(t, false), " \n")}
}

// mistakes collects the mistakes of a scenario.
type mistakes struct {
	file *ast.File
	list []*mistake
}

// maxMistakes is how many are reported at once.
const maxMistakes = 10

// add adds a mistake at a YAML path such as $.faults[0].fault.
func (c *mistakes) add(path, format string, args ...any) {
	m := &mistake{message: fmt.Sprintf(format, args...)}
	if node := c.at(path); node != nil {
		m = mistakeAt(node.GetToken(), format, args...)
	}
	m.path = path
	c.list = append(c.list, m)
}

// at returns the node of the text at a YAML path; nil: there is none.
func (c *mistakes) at(path string) ast.Node {
	p, err := yaml.PathString(path)
	if err != nil {
		return nil
	}
	node, err := p.FilterFile(c.file)
	if err != nil {
		return nil
	}
	return node
}

// check adds an error, if there is one.
func (c *mistakes) check(path string, err error) {
	if err != nil {
		c.add(path, "%v", err)
	}
}

// full reports whether there are more mistakes than are reported at once.
func (c *mistakes) full() bool { return len(c.list) > maxMistakes }

// join is all mistakes in the order of the text.
func (c *mistakes) join() error {
	slices.SortStableFunc(c.list, func(a, b *mistake) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column),
			strings.Compare(a.Error(), b.Error()))
	})
	var errs []error
	for _, m := range c.list[:min(len(c.list), maxMistakes)] {
		errs = append(errs, m)
	}
	if c.full() {
		errs = append(errs, errors.New("scenario: there are more errors; correct these first"))
	}
	return errors.Join(errs...)
}
