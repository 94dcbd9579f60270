// Package nodeconfig answers: what does a MachineConfig set that decides whether a release takes it?
//
// A MachineConfig has files with secrets, and megabytes of them. Of these this package reads one
// setting, the default runtime of CRI-O, and the paths of network scripts; of the kernel arguments those
// that select the version of cgroups, and whether one configures a network team. [Files.Ignition] is the
// reverse: a configuration with nothing else.
package nodeconfig

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// Files is what the files of an Ignition configuration state, as far as it is read.
type Files struct {
	// DefaultRuntime is the container runtime that they make the default of CRI-O. RuntimeUnread is ErrUnread where it is
	// not known.
	DefaultRuntime string
	RuntimeUnread  error
	// NetworkScripts are paths. ScriptsUnread is ErrScriptsUnread where they are not known.
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

// Ignition is a configuration of which FilesOf is the same; nil where there is nothing to state. It has the content of no file.
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

// KeptArguments are the kernel arguments that are read, in their order, and at the end the name of the one that configures a
// network team. All others may be confidential.
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

// SelectedCgroups is what kernel arguments select, and by which argument. Of several with one name the last one counts
// (systemd src/basic/proc-cmdline.c).
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
