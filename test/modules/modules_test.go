package modules_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/openshift/update-preflight/test/modules"
)

// root is the root of the repository.
const root = "../.."

// workspace is a repository whose root requires its module "lib", neither of
// them published yet.
const workspace = `
-- go.work --
go 1.26.0

use (
	.
	./lib
)

replace example.com/repo/lib v0.1.0 => ./lib
-- go.mod --
module example.com/repo

go 1.26.0

require example.com/repo/lib v0.1.0
-- repo.go --
package repo

import _ "example.com/repo/lib"
-- lib/go.mod --
module example.com/repo/lib

go 1.23
-- lib/lib.go --
package lib

import "strings"

func Loud(s string) string { return strings.ToUpper(s) }
-- test/tools/go.mod --
module example.com/repo/test/tools

go 1.26.0
`

// repository writes the files of an archive to a new directory. Later archives
// replace files of earlier ones.
func repository(t *testing.T, archives ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, archive := range archives {
		for _, file := range txtar.Parse([]byte(archive)).Files {
			path := filepath.Join(dir, filepath.FromSlash(file.Name))
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, file.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func TestThisRepositoryCanBePublished(t *testing.T) {
	violations, err := modules.Check(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(violations) > 0 {
		t.Errorf("the modules cannot be published together:\n%s", strings.Join(violations, "\n"))
	}
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change string
		want   []string
	}{
		"InOrder": {
			reason: "modules that require each other by a version that go.work replaces can be published",
		},
		"Unlisted": {
			reason: "a module outside of go.work is built with published siblings instead of the working tree",
			change: "-- other/go.mod --\nmodule example.com/repo/other\n",
			want:   []string{"go.work: the module in other is not listed"},
		},
		"Replace": {
			reason: "the Go tool does not install a module with replacements",
			change: "-- lib/go.mod --\nmodule example.com/repo/lib\n\nreplace example.com/x => ../x\n",
			want:   []string{"lib/go.mod: a published module must have no replace or exclude directive"},
		},
		"Exclude": {
			reason: "nor one with exclusions",
			change: "-- lib/go.mod --\nmodule example.com/repo/lib\n\nexclude example.com/x v1.0.0\n",
			want:   []string{"lib/go.mod: a published module must have no replace or exclude directive"},
		},
		"NotReplaced": {
			reason: "a version that go.work does not replace is looked up in the module proxy",
			change: "-- go.mod --\nmodule example.com/repo\n\nrequire example.com/repo/lib v0.2.0\n",
			want:   []string{"./go.mod requires example.com/repo/lib v0.2.0, which go.work does not replace"},
		},
		"TwoVersions": {
			reason: "modules that are tagged together require each other with the same version",
			change: "-- third/go.mod --\nmodule example.com/repo/third\n\nrequire example.com/repo/lib v0.2.0\n" +
				"-- go.work --\ngo 1.26.0\n\nuse (\n\t.\n\t./lib\n\t./third\n)\n\nreplace (\n\texample.com/repo/lib v0.1.0 => " +
				"./lib\n\texample.com/repo/lib v0.2.0 => ./lib\n)\n",
			want: []string{"the published modules require each other with 2 different versions, want one"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := modules.Check(repository(t, workspace, tc.change))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: violations (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPrepare(t *testing.T) {
	dir := repository(t, workspace)
	tags, err := modules.Prepare(dir, "v0.2.0")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"v0.2.0", "lib/v0.2.0"}, tags); diff != "" {
		t.Errorf("a module in a directory has a tag of its own (-want +got):\n%s", diff)
	}
	violations, err := modules.Check(dir)
	if err != nil || len(violations) > 0 {
		t.Errorf("violations after the change: %q, %v", violations, err)
	}
	published, err := modules.Published(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := modules.Version(published); got != "v0.2.0" {
		t.Errorf("the modules require each other with %s, want v0.2.0", got)
	}
	if _, err := modules.Prepare(dir, "1.2"); err == nil || !strings.Contains(err.Error(), `"1.2"`) {
		t.Errorf("want an error that names the invalid version, got %v", err)
	}
}
