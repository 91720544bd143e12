package site

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/lockchaos/lockchaos/internal/listing"
	"github.com/lockchaos/lockchaos/scenarios"
)

// stories writes a page for each story, and one for each chapter, which has a table of them.
func (o Options) stories() error {
	text, err := o.output("list", "scenarios", "--json")
	if err != nil {
		return err
	}
	var all []listing.Item
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	chapterOf := map[string]string{}
	for _, s := range all {
		chapterOf[s.Name] = s.Chapter
	}
	var index strings.Builder
	index.WriteString("# Stories\n\nEach story is a scenario of a failure that happens in production, with the " +
		"verdict that is expected of a lock.\n\n| chapter | stories | of these, unsafe |\n| --- | --- | --- |\n")
	var chapters []string
	for _, c := range scenarios.Chapters() {
		stories, unsafe := 0, 0
		page := fmt.Sprintf("# %s\n\n| story | what happens | lock | expected |\n| --- | --- | --- | --- |\n", c.Title)
		for _, s := range all {
			if s.Chapter != c.Name {
				continue
			}
			stories++
			page += fmt.Sprintf("| [%s](%s/%s.md) | %s | %s on %s | %s |\n", s.Name, c.Name, s.Name, cell(s.Summary), s.Lock,
				s.Topology, expected(s))
			if s.Verdict == "unsafe" {
				unsafe++
			}
			if err := o.story(s, c.Title, chapterOf); err != nil {
				return err
			}
		}
		fmt.Fprintf(&index, "| [%s](%s.md) | %d | %d |\n", c.Title, c.Name, stories, unsafe)
		chapters = append(chapters, c.Name)
		if err := o.page("stories/"+c.Name, page); err != nil {
			return err
		}
	}
	return o.page("stories/index", index.String()+contents(chapters...))
}

func expected(s listing.Item) string {
	if s.Class != "" {
		return s.Verdict + ", " + s.Class
	}
	return s.Verdict
}

// story writes the page of a story.
func (o Options) story(s listing.Item, title string, chapterOf map[string]string) error {
	file := path.Join("scenarios", "stories", s.Chapter, s.Name+".yaml")
	source, err := os.ReadFile(filepath.Join(o.Root, file))
	if err != nil {
		return err
	}
	scenario, err := scenarios.Load(s.Name)
	if err != nil {
		return err
	}
	var b strings.Builder
	// The navigation ends at the chapters: with all stories on each page, the build took three times as long.
	fmt.Fprintf(&b, "---\norphan: true\n---\n\n# %s\n\n[%s](../%s.md)\n\n%s.\n\n", s.Name, title, s.Chapter,
		capital(cell(s.Summary)))
	if s.Production != "" {
		fmt.Fprintf(&b, "**In production:** %s.\n\n", cell(s.Production))
	}
	fmt.Fprintf(&b, "**Expected verdict:** %s.\n", expected(s))
	if report := filepath.Join(o.Extra, "gallery", s.Name); exists(report) {
		fmt.Fprintf(&b, "\n![Holds of the lock over time in this run](../../gallery/%s.svg)\n\n"+
			"<a href=\"../../gallery/%s/report.html\">Open the report of this run</a>\n", s.Name, s.Name)
	}
	fmt.Fprintf(&b, "%s\n%s\n", command("chaos run --scenario "+s.Name), cell(scenario.About))
	fmt.Fprintf(&b, "\n| key | value |\n| --- | --- |\n| lock | %s |\n| servers | %s |\n| workload | %s |\n"+
		"| faults | %s |\n| source | %s |\n",
		cell(scenario.LockText()), s.Topology, s.Workload, orNone(s.Faults), cell(s.Source))
	switch s.Twin {
	case "":
	case s.Name:
		fmt.Fprintf(&b, "| safe with | `%s` |\n", cell(strings.Join(scenario.Twin.Set, " ")))
	default:
		fmt.Fprintf(&b, "| safe twin | %s |\n", storyLink(s.Twin, chapterOf))
	}
	fmt.Fprintf(&b, "\n## The scenario\n\n[%s](%s/blob/main/%s), with the [keys of a scenario]"+
		"(../../reference/scenario-keys.md):\n\n```yaml\n%s```\n", file, repository, file, source)
	return o.page("stories/"+s.Chapter+"/"+s.Name, b.String())
}

// storyLink is a link to another story, or the name of a probe, which has no page.
func storyLink(name string, chapterOf map[string]string) string {
	if chapter := chapterOf[name]; chapter != "" {
		return fmt.Sprintf("[%s](../%s/%s.md)", name, chapter, name)
	}
	return "`" + name + "`"
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
