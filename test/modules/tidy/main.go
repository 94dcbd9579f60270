// Tidy fails when "go mod tidy" would change a module of the repository, when
// modules require different versions of the same module, or when they cannot be
// published together. With -write it changes the files instead, after "go get"
// of its arguments in the module of the root. It runs in the root of the
// repository, where "go get" and "go mod tidy" themselves fail as long as a
// required sibling is not published.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/test/modules"
)

// maxRounds bounds how often a newer version may require other versions.
const maxRounds = 10

func main() {
	write := flag.Bool("write", false, "write the tidy files")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	if *write {
		err = rewrite(ctx, flag.Args())
	} else {
		err = check(ctx, os.Stdout)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// rewrite runs "go get" of the queries in the module of the root, and then makes
// all modules agree and tidy.
func rewrite(ctx context.Context, queries []string) error {
	r, err := read()
	if err != nil {
		return err
	}
	if len(queries) > 0 {
		if err := r.get(ctx, ".", queries); err != nil {
			return err
		}
	}
	for range maxRounds {
		if again, err := tidy(ctx); err != nil || !again {
			return err
		}
	}
	return fmt.Errorf("the modules do not agree on versions after %d rounds", maxRounds)
}

// check reports the violations.
func check(ctx context.Context, out io.Writer) error {
	r, err := read()
	if err != nil {
		return err
	}
	violations, err := modules.Check(".")
	if err != nil {
		return err
	}
	for _, misaligned := range modules.Align(r.all) {
		violations = append(violations, misaligned.String())
	}
	for _, module := range r.all {
		changed, err := module.Tidy(ctx, ".", r.published)
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(changed)) {
			violations = append(violations, describe(filepath.Join(module.Dir, name), changed[name]))
		}
	}
	for _, violation := range violations {
		fmt.Fprintln(out, violation)
	}
	if len(violations) > 0 {
		return errors.New("the modules of the repository are not in order")
	}
	return nil
}

// tidy aligns and tidies all modules, and reports whether a module has changed.
func tidy(ctx context.Context) (changed bool, err error) {
	r, err := read()
	if err != nil {
		return false, err
	}
	queries := map[string][]string{}
	for _, misaligned := range modules.Align(r.all) {
		queries[misaligned.Dir] = append(queries[misaligned.Dir], misaligned.Path+"@"+misaligned.Version)
	}
	for dir, wanted := range queries {
		if err := r.get(ctx, dir, wanted); err != nil {
			return false, err
		}
	}
	if r, err = read(); err != nil {
		return false, err
	}
	for _, module := range r.all {
		files, err := module.Tidy(ctx, ".", r.published)
		if err != nil {
			return false, err
		}
		if err := save(module.Dir, files); err != nil {
			return false, err
		}
		changed = changed || len(files) > 0
	}
	return changed || len(queries) > 0, nil
}

// repository has the modules as they are on disk.
type repository struct{ all, published []modules.Module }

func read() (repository, error) {
	all, err := modules.All(".")
	if err != nil {
		return repository{}, err
	}
	published, err := modules.Published(".")
	return repository{all: all, published: published}, err
}

// get runs "go get" in the module of that directory.
func (r repository) get(ctx context.Context, dir string, queries []string) error {
	for _, module := range r.all {
		if module.Dir != dir {
			continue
		}
		files, err := module.Get(ctx, ".", r.published, queries...)
		if err != nil {
			return err
		}
		return save(dir, files)
	}
	return nil
}

func save(dir string, files map[string][]byte) error {
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil { //nolint:gosec // as all files of the repository
			return err
		}
	}
	return nil
}

// describe names the lines of the file that tidy adds and removes.
func describe(path string, tidied []byte) string {
	current, _ := os.ReadFile(path) //nolint:gosec // a file of the repository, which may be missing
	before, after := strings.Split(string(current), "\n"), strings.Split(string(tidied), "\n")
	var text strings.Builder
	fmt.Fprintf(&text, "%s is not tidy; run `make tidy`:", path)
	for _, line := range before {
		if !slices.Contains(after, line) {
			text.WriteString("\n  -" + line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			text.WriteString("\n  +" + line)
		}
	}
	return text.String()
}
