package nodeconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
)

const (
	// scriptsDirectory is where NetworkManager of RHEL 9 reads connections in the format ifcfg, each in a file of which the
	// name begins with scriptPrefix (nm-settings-ifcfg-rh(5)). It ignores that of the loopback device.
	scriptsDirectory, scriptPrefix, loopback = "/etc/sysconfig/network-scripts", "ifcfg-", "ifcfg-lo"
	// maxScripts bounds these files, and maxName the name of one in bytes: Linux has no longer ones (NAME_MAX).
	maxScripts, maxName = 100, 255
	// team is the kernel argument that configures a network team in the initial RAM disk (dracut.cmdline(7)).
	team = "team"
)

// ErrScriptsUnread is the error of a configuration of which the network scripts are not known. It does not have the cause, so
// that it is the same where the files are left out.
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
