package option_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
)

// command has a flag of each effect, and one without.
func command(t *testing.T, args ...string) *cobra.Command {
	t.Helper()
	c := &cobra.Command{Use: "judge"}
	c.Flags().String("to", "4.19.1", "")
	c.Flags().StringArray("key", nil, "")
	c.Flags().StringSlice("contexts", nil, "")
	c.Flags().String("output", "text", "")
	c.Flags().String("new", "", "")
	option.Declare(c.Flags(), option.Option{Effect: option.OnAnswer}, "to")
	option.Declare(c.Flags(), option.Option{Effect: option.OnAnswerByContent}, "key")
	option.Declare(c.Flags(), option.Option{Effect: option.OnClusters}, "contexts")
	option.Declare(c.Flags(), option.Option{Effect: option.OnDisplay}, "output")
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return c
}

func key(t *testing.T, args ...string) string {
	t.Helper()
	made, err := option.Key(command(t, args...))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestKey(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, content := range map[string]string{
		"a": "A", "copy": "A", "b": "B", "one/sub/file": "A", "two/sub/file": "B",
		"three/sub/other": "A", "same/sub/file": "A",
	} {
		write(t, path(name), content)
	}
	for name, tc := range map[string]struct {
		reason        string
		first, second []string
		same          bool
	}{
		"Default":  {reason: "a default that is written is the same", second: []string{"--to", "4.19.1"}, same: true},
		"Display":  {reason: "the answer is only shown in another way", second: []string{"--output", "json"}, same: true},
		"Answer":   {reason: "the answer is about another release", second: []string{"--to", "4.19.2"}},
		"Clusters": {reason: "other clusters are asked", first: []string{"--contexts", "a"}, second: []string{"--contexts", "b"}},
		"Unknown":  {reason: "a flag without an effect may change the answer", second: []string{"--new", "x"}},
		"URL": {
			reason: "a value that no file has is compared itself", first: []string{"--key", "https://a"},
			second: []string{"--key", "https://b"},
		},
		"Content": {reason: "the files differ", first: []string{"--key", path("a")}, second: []string{"--key", path("b")}},
		"Copy": {
			reason: "the file is the same, at another path", first: []string{"--key", path("a")},
			second: []string{"--key", path("copy")}, same: true,
		},
		"Fewer": {
			reason: "one of two files is missing", first: []string{"--key", path("a"), "--key", path("b")},
			second: []string{"--key", path("a")},
		},
		"Directory": {reason: "a file of the directories differs", first: []string{"--key", path("one")}, second: []string{"--key", path("two")}},
		"Name": {
			reason: "a file of the directories has another name", first: []string{"--key", path("one")},
			second: []string{"--key", path("three")},
		},
		"Equal": {
			reason: "the directories are the same", first: []string{"--key", path("one")}, second: []string{"--key", path("same")},
			same: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if same := key(t, tc.first...) == key(t, tc.second...); same != tc.same {
				t.Errorf("%s: %t", tc.reason, same)
			}
		})
	}
	before := key(t, "--key", path("a"))
	write(t, path("a"), "C")
	if key(t, "--key", path("a")) == before {
		t.Error("the file at the same path has another content")
	}
}

func TestKeyOfFilesThatCannotBeCompared(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		syscall.Mkfifo(path("pipe"), 0o600),
		os.Mkdir(path("loop"), 0o700), os.Symlink(path("loop"), path("loop/again")),
	); err != nil {
		t.Fatal(err)
	}
	for name, reason := range map[string]string{"pipe": "it can be read once", "loop": "it has no end"} {
		if _, err := option.Key(command(t, "--key", path(name))); err == nil {
			t.Errorf("%s: %s", name, reason)
		}
	}
}
