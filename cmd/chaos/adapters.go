package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/internal/format"
)

// adapterItem is a row of chaos adapters list.
type adapterItem struct {
	adapters.Adapter
	Built   bool     `json:"built"`
	Missing []string `json:"missing,omitempty"` // programs that building it needs
}

func newAdapters(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "adapters",
		Short: "Build and list clients for the lock libraries that people use",
		Long: `An adapter is a client (docs/reference/protocol.md) for the locks of a library, pinned to a release. It is
built once, in the user's cache directory (or in $LOCKCHAOS_ADAPTERS); chaos run --lock LIBRARY/KIND runs it.`,
		Example: `  chaos adapters list
  chaos adapters build redis-py redsync
  chaos run --scenario gc-pause --lock redis-py/lock`,
		Args: unknownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newAdaptersList(s), newAdaptersBuild(s))
	return c
}

func newAdaptersList(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the libraries, their locks, and what is built",
		Args:  noArgs(""),
		RunE: func(*cobra.Command, []string) error {
			items, err := adapterItems()
			if err != nil {
				return err
			}
			if asJSON {
				return s.json(items)
			}
			w := s.table()
			for _, a := range items {
				state := "not built"
				switch {
				case a.Built:
					state = "built"
				case len(a.Missing) > 0:
					state = "needs " + strings.Join(a.Missing, ", ")
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", a.Library, a.Version, a.Language, state, a.Homepage)
				for _, k := range a.Kinds {
					fmt.Fprintf(w, "  %s/%s\t\t\t%s\t%s\n", a.Library, k.Name, strings.Join(k.Topologies, ", "), k.Doc)
				}
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return c
}

func adapterItems() ([]adapterItem, error) {
	all, err := adapters.Catalog()
	var items []adapterItem
	for _, a := range all {
		items = append(items, adapterItem{a, a.Ready() == nil, a.Missing()})
	}
	return items, err
}

func newAdaptersBuild(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "build [LIBRARY…]",
		Short: "Build adapters: those named, or all for which this machine has the toolchain",
		Long: `Downloads the pinned release of each library with the package manager of its language, and builds its
client. The output of these commands goes to standard error. Without names, an adapter whose toolchain is
missing is skipped, and its line says what is missing. Exit code 69 if an adapter that was named or tried could
not be built.`,
		Example: `  chaos adapters build
  chaos adapters build redis-py node-redlock`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return libraryNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error { return buildAdapters(c.Context(), s, args) },
	}
}

func libraryNames() []string {
	all, _ := adapters.Catalog()
	return format.Texts(all, func(a adapters.Adapter) string { return a.Library })
}

func buildAdapters(ctx context.Context, s streams, names []string) error {
	all, err := adapters.Catalog()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := known("unknown library", name, libraryNames()); err != nil {
			return err
		}
	}
	failed := 0
	for _, a := range all {
		if len(names) > 0 && !slices.Contains(names, a.Library) {
			continue
		}
		if missing := a.Missing(); len(missing) > 0 && len(names) == 0 {
			fmt.Fprintf(s.out, "skipped  %s %s: needs %s\n", a.Library, a.Version, strings.Join(missing, ", "))
			continue
		}
		if !buildAdapter(ctx, s, a) {
			failed++
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if failed > 0 {
		return &codeError{code: exitEnvironment}
	}
	return nil
}

func buildAdapter(ctx context.Context, s streams, a adapters.Adapter) bool {
	if a.Ready() == nil {
		fmt.Fprintf(s.out, "ready    %s %s\n", a.Library, a.Version)
		return true
	}
	s.note("building %s %s", a.Library, a.Version)
	if err := a.Make(ctx, s.err); err != nil {
		fmt.Fprintf(s.out, "failed   %s %s: %v\n", a.Library, a.Version, err)
		return false
	}
	fmt.Fprintf(s.out, "built    %s %s\n", a.Library, a.Version)
	return true
}
