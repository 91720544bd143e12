package scenarios

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/lockchaos/lockchaos/internal/nearest"
)

// Load reads the scenario of that name, or from a file: a name with a path separator, or that ends in .yaml or .yml,
// is a file. A text without a name has the name of its file. Overrides are applied before the scenario is checked.
// Errors show line and column, or name the override.
func Load(name string, overrides ...Override) (Scenario, error) {
	source, err := read(name)
	if err != nil {
		return Scenario{}, err
	}
	s, err := parse(source, base(name), overrides)
	if err != nil && isFile(name) {
		err = inFile(err, name)
	}
	return s, err
}

// inFile names the file in errors about its text.
func inFile(err error, name string) error {
	all := slices.Clone(split(err))
	for i, one := range all {
		if m, ok := errors.AsType[*mistake](one); ok {
			m.file = name
		} else if rest, ok := strings.CutPrefix(one.Error(), "scenario: "); ok {
			all[i] = fmt.Errorf("%s: %s", name, rest)
		}
	}
	return errors.Join(all...)
}

func read(name string) ([]byte, error) {
	if isFile(name) {
		source, err := readFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading the scenario: %w", err)
		}
		return source, nil
	}
	source, err := named(name)
	if err == nil && source == nil {
		err = fmt.Errorf("unknown scenario %q%s", name,
			nearest.Or(name, Names(), " (see chaos list scenarios; write ./FILE.yaml for a file of your own)"))
	}
	return source, err
}

// readFile reads a regular file or a pipe, and no more of it than a scenario may have: /dev/zero has no end.
func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name) // before opening it: to open a device may block, or act on it
	if err != nil {
		return nil, err
	}
	if kind := info.Mode().Type(); kind != 0 && kind != fs.ModeNamedPipe {
		return nil, fmt.Errorf("%s is neither a regular file nor a pipe", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	source, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err == nil && len(source) > maxText {
		err = fmt.Errorf("%s has more than %d bytes, the limit", name, maxText)
	}
	return source, err
}

func isFile(name string) bool {
	return strings.ContainsRune(name, filepath.Separator) ||
		strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// Parse reads a scenario from YAML and checks it. See [Load].
func Parse(source []byte, overrides ...Override) (Scenario, error) {
	return parse(source, "", overrides)
}

// parse reads and checks a text. A scenario without a name gets this one.
func parse(source []byte, name string, overrides []Override) (s Scenario, err error) {
	defer func() {
		if p := recover(); p != nil { // the YAML library panics on some texts that fuzzing has found
			s, err = Scenario{}, fmt.Errorf("scenario: the text is not YAML: %v", p)
		}
	}()
	if len(overrides) == 0 {
		s, _, err = decode(source, name)
		return s, err
	}
	changed, err := override(source, overrides)
	if err != nil {
		return Scenario{}, err
	}
	s, file, err := decode(changed, name)
	if err != nil {
		return Scenario{}, attribute(err, file, source, name, overrides)
	}
	var written struct {
		Lock string `yaml:"lock"`
	}
	if yaml.Unmarshal(source, &written) == nil && written.Lock != "" && written.Lock != s.Lock {
		expected, _ := s.Expect.Split()
		s.Expect = s.ExpectOfAnotherLock()
		if other, _ := s.Expect.Split(); other != expected {
			s.Production = "" // it is the meaning of the other verdict
		}
	}
	return s, nil
}

// decode reads and checks a text; file is nil if it is not YAML. A scenario without a name gets this one.
func decode(source []byte, name string) (s Scenario, file *ast.File, err error) {
	file, err = inspect(source)
	if err != nil {
		return Scenario{}, nil, err
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return Scenario{}, nil, errors.New("scenario: the text is empty")
	}
	n := numberCheck{fields: fields()}
	if ast.Walk(&n, file.Docs[0].Body); n.err != nil {
		return Scenario{}, file, n.err
	}
	if err := yaml.NewDecoder(bytes.NewReader(source), yaml.Strict()).Decode(&s); err != nil {
		return Scenario{}, file, syntaxError(err)
	}
	s.Name = cmp.Or(s.Name, name)
	if err := check(s, file); err != nil {
		return Scenario{}, file, err
	}
	return s, file, nil
}

// YAML is the scenario as a text for [Parse].
func (s Scenario) YAML() string {
	// A literal block is readable, but the library writes some texts so that they are read back differently, such as a
	// text with a leading space.
	text, err := yaml.MarshalWithOptions(s, yaml.UseLiteralStyleIfMultiline(true))
	var copied Scenario
	if err == nil && (yaml.Unmarshal(text, &copied) != nil || !reflect.DeepEqual(s, copied)) {
		text, err = yaml.Marshal(s)
	}
	if err != nil {
		return "# " + err.Error()
	}
	return string(text)
}
