package nodeconfig_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/nodeconfig"
)

func TestSelectedCgroups(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		arguments []string
		want      nodeconfig.Cgroups
		by        string
	}{
		"None":     {reason: "nothing is selected", arguments: []string{"quiet", "psi=1"}},
		"V1":       {reason: "zero is false", arguments: []string{"systemd.unified_cgroup_hierarchy=0"}, want: nodeconfig.V1, by: "systemd.unified_cgroup_hierarchy=0"},
		"Word":     {reason: "systemd knows words", arguments: []string{"systemd.unified_cgroup_hierarchy=Off"}, want: nodeconfig.V1, by: "systemd.unified_cgroup_hierarchy=Off"},
		"Flag":     {reason: "without a value it is true", arguments: []string{"systemd.unified_cgroup_hierarchy"}, want: nodeconfig.Unified, by: "systemd.unified_cgroup_hierarchy"},
		"Invalid":  {reason: "systemd ignores what it cannot parse", arguments: []string{"systemd.unified_cgroup_hierarchy=maybe"}},
		"Several":  {reason: "an element may have several", arguments: []string{"a systemd.unified_cgroup_hierarchy=0 b"}, want: nodeconfig.V1, by: "systemd.unified_cgroup_hierarchy=0"},
		"Last":     {reason: "the last one counts", arguments: []string{"systemd.unified_cgroup_hierarchy=0", "systemd.unified_cgroup_hierarchy=1"}, want: nodeconfig.Unified, by: "systemd.unified_cgroup_hierarchy=1"},
		"Legacy":   {reason: "it selects no hierarchy", arguments: []string{"systemd.legacy_systemd_cgroup_controller=1"}, want: nodeconfig.LegacyController, by: "systemd.legacy_systemd_cgroup_controller=1"},
		"Beside":   {reason: "the hierarchy precedes", arguments: []string{"systemd.unified_cgroup_hierarchy=0", "systemd.legacy_systemd_cgroup_controller=1"}, want: nodeconfig.V1, by: "systemd.unified_cgroup_hierarchy=0"},
		"Disabled": {reason: "it is off", arguments: []string{"systemd.legacy_systemd_cgroup_controller=0"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, by := nodeconfig.SelectedCgroups(tc.arguments)
			if got != tc.want || by != tc.by {
				t.Errorf("%s: %q by %q, want %q by %q", tc.reason, got, by, tc.want, tc.by)
			}
		})
	}
	kept := nodeconfig.CgroupArguments([]string{"rd.iscsi.password=secret", "x systemd.unified_cgroup_hierarchy=0"})
	if diff := cmp.Diff([]string{"systemd.unified_cgroup_hierarchy=0"}, kept); diff != "" {
		t.Errorf("other arguments may be confidential: -want +got:\n%s", diff)
	}
}

// file is a file of an Ignition configuration.
func file(path, content string) string {
	return fmt.Sprintf(`{"path": %q, "contents": {"source": %q}}`, path, "data:,"+url.PathEscape(content))
}

func TestDefaultRuntime(t *testing.T) {
	const first, second = "/etc/crio/crio.conf.d/01", "/etc/crio/crio.conf.d/02"
	const runc, crun = "[crio.runtime]\ndefault_runtime = \"runc\"\n", "[crio.runtime]\ndefault_runtime = \"crun\"\n"
	for name, tc := range map[string]struct {
		reason, files, want string
		failed              bool
	}{
		"None":     {reason: "no file is of CRI-O", files: file("/etc/motd", runc)},
		"Runc":     {reason: "it is set", files: file(first, runc), want: "runc"},
		"Last":     {reason: "files are read in the order of their paths", files: file(second, runc) + "," + file(first, crun), want: "runc"},
		"Other":    {reason: "another file does not set it", files: file(first, runc) + "," + file(second, "[crio.image]\n"), want: "runc"},
		"Table":    {reason: "the key is one of its table", files: file(first, "[crio.runtime.runtimes.runc]\ndefault_runtime = \"runc\"\n")},
		"Nested":   {reason: "a key may have the rest of the table", files: file(first, "[crio]\nruntime.default_runtime = 'runc'\n"), want: "runc"},
		"Comment":  {reason: "it sets nothing", files: file(first, "[crio.runtime]\n# default_runtime = \"runc\"\n")},
		"Trailing": {reason: "a comment follows the value", files: file(first, "[crio.runtime] # of nodes\ndefault_runtime = \"runc\" # \"crun\"\n"), want: "runc"},
		"Remote":   {reason: "the content is elsewhere", files: `{"path": "` + first + `", "contents": {"source": "https://example.com/a"}}`, failed: true},
		"Packed":   {reason: "the compression is not known", files: `{"path": "` + first + `", "contents": {"source": "data:,a", "compression": "xz"}}`, failed: true},
		"Broken":   {reason: "it is not compressed", files: `{"path": "` + first + `", "contents": {"source": "data:,a", "compression": "gzip"}}`, failed: true},
		"Form":     {reason: "the path is no text", files: `{"path": ["` + first + `"]}`, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := nodeconfig.DefaultRuntime(json.RawMessage(`{"storage": {"files": [` + tc.files + `]}}`))
			if got != tc.want || errors.Is(err, nodeconfig.ErrUnread) != tc.failed {
				t.Errorf("%s: %q, %v", tc.reason, got, err)
			}
		})
	}
}

// FuzzDefaultRuntime holds that nothing of a configuration ends it, and that what is kept of one states the same.
func FuzzDefaultRuntime(f *testing.F) {
	f.Add([]byte(`{"storage": {"files": [` + file("/etc/crio/crio.conf.d/a", "[crio.runtime]\ndefault_runtime=\"runc\"") + `]}}`))
	f.Add([]byte(`{"storage": {"files": [{"path": "/etc/crio/crio.conf.d/a", "contents": {"source": "data:;base64,=", "compression": "gzip"}}]}}`))
	f.Fuzz(func(t *testing.T, config []byte) {
		runtime, err := nodeconfig.DefaultRuntime(config)
		kept, encodeErr := json.Marshal(nodeconfig.Ignition(runtime, err))
		if encodeErr != nil {
			t.Fatal(encodeErr)
		}
		again, againErr := nodeconfig.DefaultRuntime(kept)
		if again != runtime || (againErr == nil) != (err == nil) {
			t.Errorf("%q, %v became %q, %v", runtime, err, again, againErr)
		}
	})
}
