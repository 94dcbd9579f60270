package nodeconfig_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openshift/update-preflight/collector/nodeconfig"
)

func TestSelectedCgroups(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		arguments []string
		want      nodeconfig.Cgroups
		by        string
	}{
		"None": {reason: "nothing is selected", arguments: []string{"quiet", "psi=1"}},
		"V1": {
			reason: "zero is false", arguments: []string{"systemd.unified_cgroup_hierarchy=0"}, want: nodeconfig.V1,
			by: "systemd.unified_cgroup_hierarchy=0",
		},
		"Word": {
			reason: "systemd knows words", arguments: []string{"systemd.unified_cgroup_hierarchy=Off"}, want: nodeconfig.V1,
			by: "systemd.unified_cgroup_hierarchy=Off",
		},
		"Flag": {
			reason: "without a value it is true", arguments: []string{"systemd.unified_cgroup_hierarchy"}, want: nodeconfig.Unified,
			by: "systemd.unified_cgroup_hierarchy",
		},
		"Invalid": {reason: "systemd ignores what it cannot parse", arguments: []string{"systemd.unified_cgroup_hierarchy=maybe"}},
		"Several": {
			reason: "an element may have several", arguments: []string{"a systemd.unified_cgroup_hierarchy=0 b"}, want: nodeconfig.V1,
			by: "systemd.unified_cgroup_hierarchy=0",
		},
		"Last": {reason: "the last one counts", arguments: []string{
			"systemd.unified_cgroup_hierarchy=0",
			"systemd.unified_cgroup_hierarchy=1",
		}, want: nodeconfig.Unified, by: "systemd.unified_cgroup_hierarchy=1"},
		"Legacy": {
			reason: "it selects no hierarchy", arguments: []string{"systemd.legacy_systemd_cgroup_controller=1"},
			want: nodeconfig.LegacyController, by: "systemd.legacy_systemd_cgroup_controller=1",
		},
		"Beside": {reason: "the hierarchy precedes", arguments: []string{
			"systemd.unified_cgroup_hierarchy=0",
			"systemd.legacy_systemd_cgroup_controller=1",
		}, want: nodeconfig.V1, by: "systemd.unified_cgroup_hierarchy=0"},
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
		"None":  {reason: "no file is of CRI-O", files: file("/etc/motd", runc)},
		"Runc":  {reason: "it is set", files: file(first, runc), want: "runc"},
		"Last":  {reason: "files are read in the order of their paths", files: file(second, runc) + "," + file(first, crun), want: "runc"},
		"Other": {reason: "another file does not set it", files: file(first, runc) + "," + file(second, "[crio.image]\n"), want: "runc"},
		"Table": {reason: "the key is one of its table", files: file(first, "[crio.runtime.runtimes.runc]\ndefault_runtime = \"runc\"\n")},
		"Nested": {
			reason: "a key may have the rest of the table", files: file(first, "[crio]\nruntime.default_runtime = 'runc'\n"),
			want: "runc",
		},
		"Comment": {reason: "it sets nothing", files: file(first, "[crio.runtime]\n# default_runtime = \"runc\"\n")},
		"Trailing": {
			reason: "a comment follows the value",
			files:  file(first, "[crio.runtime] # of nodes\ndefault_runtime = \"runc\" # \"crun\"\n"), want: "runc",
		},
		"Remote": {
			reason: "the content is elsewhere", files: `{"path": "` + first + `", "contents": {"source": "https://example.com/a"}}`,
			failed: true,
		},
		"Packed": {
			reason: "the compression is not known",
			files:  `{"path": "` + first + `", "contents": {"source": "data:,a", "compression": "xz"}}`, failed: true,
		},
		"Broken": {
			reason: "it is not compressed", files: `{"path": "` + first + `", "contents": {"source": "data:,a", "compression": "gzip"}}`,
			failed: true,
		},
		"Form": {reason: "the path is no text", files: `{"path": ["` + first + `"]}`, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := nodeconfig.DefaultRuntime(json.RawMessage(`{"storage": {"files": [` + tc.files + `]}}`))
			if got != tc.want || errors.Is(err, nodeconfig.ErrUnread) != tc.failed {
				t.Errorf("%s: %q, %v", tc.reason, got, err)
			}
		})
	}
}

func TestNetworkScripts(t *testing.T) {
	const directory = "/etc/sysconfig/network-scripts/"
	for name, tc := range map[string]struct {
		reason, files string
		want          []string
		failed        bool
	}{
		"None": {
			reason: "keyfiles are read by all releases",
			files:  file("/etc/NetworkManager/system-connections/eth0.nmconnection", "network-scripts"),
		},
		"Sorted": {reason: "each is named once", files: file(directory+"ifcfg-eth1", "a") + "," + file(directory+"ifcfg-bond0", "a") + "," +
			file(directory+"ifcfg-eth1", "b"), want: []string{directory + "ifcfg-bond0", directory + "ifcfg-eth1"}},
		"Clean": {
			reason: "another notation is the same file", files: file("/etc/sysconfig//network-scripts/./ifcfg-eth0", "a"),
			want: []string{directory + "ifcfg-eth0"},
		},
		"Other": {
			reason: "routes alone are no connection",
			files:  file(directory+"route-eth0", "a") + "," + file(directory+"keys/ifcfg-eth0", "a"),
		},
		"Loopback":  {reason: "NetworkManager ignores it", files: file(directory+"ifcfg-lo", "a")},
		"Elsewhere": {reason: "it is another directory", files: file("/root/network-scripts/ifcfg-eth0", "a")},
		"Remote": {reason: "the content does not matter", files: `{"path": "` + directory +
			`ifcfg-eth0", "contents": {"source": "https://example.com/a"}}`, want: []string{directory + "ifcfg-eth0"}},
		"Form": {reason: "the path is no text", files: `{"path": ["` + directory + `ifcfg-eth0"]}`, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := nodeconfig.NetworkScripts(json.RawMessage(`{"storage": {"files": [` + tc.files + `]}}`))
			if diff := cmp.Diff(tc.want, got); diff != "" || errors.Is(err, nodeconfig.ErrScriptsUnread) != tc.failed {
				t.Errorf("%s: %v; -want +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

func TestHasNetworkTeam(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		arguments []string
		want      bool
	}{
		"None":    {reason: "a bond is none", arguments: []string{"bond=team0:em1,em2", "teams=1"}},
		"Team":    {reason: "it is configured", arguments: []string{"ip=team0:dhcp", "team=team0:em1,em2"}, want: true},
		"Several": {reason: "an element may have several", arguments: []string{"quiet team=team0:em1 psi=1"}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := nodeconfig.HasNetworkTeam(tc.arguments); got != tc.want {
				t.Errorf("%s: %v", tc.reason, got)
			}
			kept := nodeconfig.KeptArguments(tc.arguments)
			if again := nodeconfig.HasNetworkTeam(kept); again != tc.want || len(kept) > 1 {
				t.Errorf("%s: kept are %q", tc.reason, kept)
			}
		})
	}
}

// FuzzFiles holds that nothing of a configuration ends it, and that what is kept of one states the same.
func FuzzFiles(f *testing.F) {
	f.Add([]byte(`{"storage": {"files": [` + file("/etc/crio/crio.conf.d/a", "[crio.runtime]\ndefault_runtime=\"runc\"") + `]}}`))
	f.Add([]byte(
		`{"storage": {"files": [{"path": "/etc/crio/crio.conf.d/a", "contents": {"source": "data:;base64,=", "compression": "gzip"}}]}}`))
	f.Add([]byte(
		`{"storage": {"files": [{"path": "/etc/sysconfig/network-scripts/ifcfg-eth0"}, {"path": "/etc/crio/crio.conf.d/a", "contents": {"source": "a"}}]}}`))
	f.Add([]byte(`{"storage": {"files": [{"path": ["/etc/sysconfig/network-scripts/ifcfg-eth0"]}]}}`))
	f.Fuzz(func(t *testing.T, config []byte) {
		files := nodeconfig.FilesOf(config)
		kept, err := json.Marshal(files.Ignition())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(files, nodeconfig.FilesOf(kept), cmpopts.EquateErrors()); diff != "" {
			t.Errorf("it became another one: %s", diff)
		}
	})
}
