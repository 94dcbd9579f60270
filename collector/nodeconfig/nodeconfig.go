// Package nodeconfig answers: which settings of a MachineConfig decide whether a release accepts it?
//
// A MachineConfig contains megabytes of files, some with secrets. Of these this package reads only the default
// runtime of CRI-O and the paths of network scripts; of the kernel arguments, only the ones that select the
// version of cgroups or configure a network team. [Files.Ignition] is the reverse: it returns a configuration with
// nothing else.
package nodeconfig

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
)

// Files contains the settings that were read from the files of an Ignition configuration.
type Files struct {
	// DefaultRuntime is the container runtime that they make the default of CRI-O. RuntimeUnread is ErrUnread if it is
	// unknown.
	DefaultRuntime string
	RuntimeUnread  error
	// NetworkScripts are paths. ScriptsUnread is ErrScriptsUnread if they are unknown.
	NetworkScripts []string
	ScriptsUnread  error
}

// FilesOf reads a configuration.
func FilesOf(ignition json.RawMessage) Files {
	var f Files
	f.DefaultRuntime, f.RuntimeUnread = DefaultRuntime(ignition)
	f.NetworkScripts, f.ScriptsUnread = NetworkScripts(ignition)
	return f
}

// Ignition returns a configuration with an equal FilesOf; nil if there is nothing to record. It contains the
// content of no file.
func (f Files) Ignition() map[string]any {
	var files []any
	if f.DefaultRuntime != "" || f.RuntimeUnread != nil {
		source := "unread:"
		if f.RuntimeUnread == nil && runtimeName.MatchString(f.DefaultRuntime) {
			source = "data:," + url.PathEscape("[crio.runtime]\ndefault_runtime = \""+f.DefaultRuntime+"\"\n")
		}
		files = append(files, map[string]any{"path": dropIns + "default-runtime", "contents": map[string]any{"source": source}})
	}
	for _, script := range f.NetworkScripts {
		files = append(files, map[string]any{"path": script})
	}
	if f.ScriptsUnread != nil {
		files = append(files, map[string]any{"path": []any{scriptsDirectory}}) // which is no path
	}
	if files == nil {
		return nil
	}
	return map[string]any{"storage": map[string]any{"files": files}}
}

// KeptArguments returns the kernel arguments that are read, in their order, and at the end the name of the
// argument that configures a network team. All others may be confidential.
func KeptArguments(arguments []string) []string {
	kept := CgroupArguments(arguments)
	if HasNetworkTeam(arguments) {
		kept = append(kept, team)
	}
	return kept
}

const (
	// unified and legacy are the kernel arguments by which systemd selects the hierarchy of cgroups (kernel-command-line(7)).
	// The machine-config-operator sets both for cgroup v1, and its opposite for v2 (pkg/controller/kubelet-config/helpers.go,
	// updateMachineConfigwithCgroup, 4.14 to 4.18; since 4.19 it removes those for v1 from its own MachineConfigs only).
	unified = "systemd.unified_cgroup_hierarchy"
	legacy  = "systemd.legacy_systemd_cgroup_controller"
)

// maxArguments bounds the kernel arguments that are kept of one MachineConfig.
const maxArguments = 100

// CgroupArguments are the kernel arguments about cgroups in the order in which the kernel gets them, at most 100. An
// element may have several, separated by spaces (machine-config-operator pkg/daemon, parseKernelArguments). All others may
// be confidential, such as the password of an iSCSI target.
func CgroupArguments(arguments []string) []string {
	var found []string
	for _, element := range arguments {
		for argument := range strings.FieldsSeq(element) {
			name, _, _ := strings.Cut(argument, "=")
			if (name == unified || name == legacy) && len(found) < maxArguments {
				found = append(found, argument)
			}
		}
	}
	return found
}

// Cgroups is the version of cgroups that the kernel arguments of a node select.
type Cgroups string

// The selections.
const (
	// Default of the operating system, which is v2 since RHEL CoreOS 9.
	Default Cgroups = ""
	// Unified is cgroup v2.
	Unified Cgroups = "v2"
	// V1 is cgroup v1, or both side by side.
	V1 Cgroups = "v1"
	// LegacyController selects the controller of v1 in case something else selects v1.
	LegacyController Cgroups = "legacy controller"
)

// SelectedCgroups returns the version that kernel arguments select, and the argument that does. Of several
// arguments with one name, the last one counts (systemd src/basic/proc-cmdline.c).
func SelectedCgroups(arguments []string) (selected Cgroups, by string) {
	for _, argument := range slices.Backward(CgroupArguments(arguments)) {
		name, _, _ := strings.Cut(argument, "=")
		enabled, valid := enabledBy(argument)
		switch {
		case !valid:
		case name == unified && enabled:
			return Unified, argument
		case name == unified:
			return V1, argument
		case name == legacy && enabled && selected == Default:
			selected, by = LegacyController, argument
		}
	}
	return selected, by
}

// enabledBy is the value of an argument as systemd parses it (src/basic/parse-util.c, parse_boolean); without a value it is true.
func enabledBy(argument string) (enabled, valid bool) {
	_, value, assigned := strings.Cut(argument, "=")
	if !assigned {
		return true, true
	}
	switch strings.ToLower(strings.Trim(value, `"'`)) {
	case "1", "yes", "y", "true", "t", "on":
		return true, true
	case "0", "no", "n", "false", "f", "off":
		return false, true
	}
	return false, false
}

const (
	// scriptsDirectory is where NetworkManager of RHEL 9 reads connections in the format ifcfg, each in a file whose
	// name begins with scriptPrefix (nm-settings-ifcfg-rh(5)). It ignores the file of the loopback device.
	scriptsDirectory, scriptPrefix, loopback = "/etc/sysconfig/network-scripts", "ifcfg-", "ifcfg-lo"
	// maxScripts bounds these files, and maxName the name of one in bytes: Linux has no longer ones (NAME_MAX).
	maxScripts, maxName = 100, 255
	// team is the kernel argument that configures a network team in the initial RAM disk (dracut.cmdline(7)).
	team = "team"
)

// ErrScriptsUnread is the error of a configuration whose network scripts are unknown. It does not contain the
// cause, so that it is the same if the files are omitted.
var ErrScriptsUnread = errors.New("the paths of its files cannot be decoded")

// NetworkScripts are the paths of the files of an Ignition configuration that configure connections in the format ifcfg,
// sorted, at most 100. The error is ErrScriptsUnread.
func NetworkScripts(ignition json.RawMessage) ([]string, error) {
	if !bytes.Contains(ignition, []byte(path.Base(scriptsDirectory))) {
		return nil, nil
	}
	files, ok := filesOf(ignition)
	if !ok {
		return nil, ErrScriptsUnread
	}
	var scripts []string
	for _, file := range files {
		directory, name := path.Split(path.Clean(file.Path))
		if directory == scriptsDirectory+"/" && strings.HasPrefix(name, scriptPrefix) && name != loopback && len(name) <= maxName {
			scripts = append(scripts, directory+name)
		}
	}
	slices.Sort(scripts)
	scripts = slices.Compact(scripts)
	return scripts[:min(len(scripts), maxScripts)], nil
}

// HasNetworkTeam reports whether kernel arguments configure a network team.
func HasNetworkTeam(arguments []string) bool {
	return slices.ContainsFunc(arguments, func(element string) bool {
		for argument := range strings.FieldsSeq(element) {
			if name, _, _ := strings.Cut(argument, "="); name == team {
				return true
			}
		}
		return false
	})
}

const (
	// dropIns is the directory of CRI-O whose files the machine-config-operator reads for the default runtime
	// (pkg/controller/common/helpers.go, DetectRuncInMachineConfig, since 4.23 and 5.0).
	dropIns = "/etc/crio/crio.conf.d/"
	// maxDropIns bounds these files, and maxDropIn the content of one in bytes.
	maxDropIns, maxDropIn = 1000, 1 << 20
	// runtimeKey is the key of the default runtime.
	runtimeKey = "crio.runtime.default_runtime"
)

// runtimeName matches the name of a runtime, which is the only value of a file that is kept.
var runtimeName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,63}$`)

// ErrUnread is the error of a configuration whose default runtime is unknown. It does not contain the cause, so
// that it is the same if the files are omitted.
var ErrUnread = errors.New("a file below " + dropIns + " cannot be decoded")

// ignitionConfig are the fields of an Ignition configuration that are read. They are the same in all versions.
type ignitionConfig struct {
	Storage struct {
		Files []ignitionFile `json:"files"`
	} `json:"storage"`
}

type ignitionFile struct {
	Path     string `json:"path"`
	Contents struct {
		Source      string `json:"source"`
		Compression string `json:"compression"`
	} `json:"contents"`
}

// DefaultRuntime returns the container runtime that the files of an Ignition configuration make the default of
// CRI-O; empty if none does. Of several files, the last one by path counts. The error is ErrUnread.
func DefaultRuntime(ignition json.RawMessage) (string, error) {
	if !bytes.Contains(ignition, []byte("crio.conf.d")) {
		return "", nil
	}
	all, ok := filesOf(ignition)
	if !ok {
		return "", ErrUnread
	}
	files := slices.DeleteFunc(all, func(file ignitionFile) bool { return !strings.HasPrefix(file.Path, dropIns) })
	if len(files) > maxDropIns {
		return "", ErrUnread
	}
	slices.SortStableFunc(files, func(a, b ignitionFile) int { return cmp.Compare(a.Path, b.Path) })
	runtime := ""
	for _, file := range files {
		content, ok := file.content()
		if !ok {
			return "", ErrUnread
		}
		runtime = cmp.Or(runtimeOf(content), runtime)
	}
	return runtime, nil
}

// filesOf are the files of a configuration; false where it cannot be decoded.
func filesOf(ignition json.RawMessage) ([]ignitionFile, bool) {
	var config ignitionConfig
	err := kjson.UnmarshalCaseSensitivePreserveInts(ignition, &config)
	return config.Storage.Files, err == nil
}

// content decodes the data URL of a file (RFC 2397), and decompresses it; false where it cannot be decoded.
func (f ignitionFile) content() ([]byte, bool) {
	if f.Contents.Source == "" {
		return nil, true
	}
	rest, ok := strings.CutPrefix(f.Contents.Source, "data:")
	kind, data, comma := strings.Cut(rest, ",")
	text, err := url.PathUnescape(data)
	if !ok || !comma || err != nil {
		return nil, false
	}
	content := []byte(text)
	if strings.HasSuffix(kind, ";base64") {
		if content, err = base64.StdEncoding.DecodeString(text); err != nil {
			return nil, false
		}
	}
	switch f.Contents.Compression {
	case "":
		return content, len(content) <= maxDropIn
	case "gzip":
		return decompress(content)
	}
	return nil, false
}

func decompress(content []byte) ([]byte, bool) {
	from, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, false
	}
	into, err := io.ReadAll(io.LimitReader(from, maxDropIn+1))
	return into, err == nil && len(into) <= maxDropIn
}

// runtimeOf is the default runtime that a file of CRI-O sets, in TOML; empty where it sets none. Only assignments of a line
// of their own are read, as all tools write them.
func runtimeOf(content []byte) string {
	table, runtime := "", ""
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if header, ok := strings.CutPrefix(line, "["); ok {
			name, _, _ := strings.Cut(header, "]")
			table = normalKey(name)
			continue
		}
		key, value, assigned := strings.Cut(line, "=")
		if !assigned || strings.HasPrefix(line, "#") {
			continue
		}
		if normalKey(strings.Trim(table+"."+key, ".")) == runtimeKey {
			runtime = cmp.Or(quoted(value), runtime)
		}
	}
	return runtime
}

// normalKey is a key without the quotation marks and spaces that its parts may have.
func normalKey(key string) string {
	parts := strings.Split(key, ".")
	for at, part := range parts {
		parts[at] = strings.Trim(strings.TrimSpace(part), `"'`)
	}
	return strings.Join(parts, ".")
}

// quoted is the value of a string on one line; empty for another one.
func quoted(value string) string {
	value = strings.TrimSpace(value)
	if value == "" || value[0] != '"' && value[0] != '\'' {
		return ""
	}
	text, _, closed := strings.Cut(value[1:], value[:1])
	if !closed || !runtimeName.MatchString(text) {
		return ""
	}
	return text
}
