package roster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/fleet"
)

// Contexts are the contexts of a kubeconfig whose names match one of the patterns, by name: in
// a pattern, * is any text and ? any character. load makes the configuration of a context. A
// pattern that matches none is an *input.Error.
func Contexts(config clientcmdapi.Config, patterns []string, load func(context string) (*rest.Config, error), connect Connect) ([]Member, error) {
	matching := map[string]bool{}
	all := slices.Sorted(maps.Keys(config.Contexts))
	for _, pattern := range patterns {
		expression := glob(pattern)
		before := len(matching)
		for _, name := range all {
			if expression.MatchString(name) {
				matching[name] = true
			}
		}
		if len(matching) == before && !slices.ContainsFunc(slices.Collect(maps.Keys(matching)), expression.MatchString) {
			return nil, input.Errorf("no context matches %q; the kubeconfig has %s", words.Line(pattern, maxQuoted), nameList(all))
		}
	}
	members := make([]Member, 0, len(matching))
	for _, name := range slices.Sorted(maps.Keys(matching)) {
		members = append(members, configured(fleet.Cluster{Name: name, Source: "context " + name}, func() (*rest.Config, error) { return load(name) }, connect, "context", name))
	}
	return members, limit(len(members))
}

// maxQuoted bounds a text of the user in an error, in bytes.
const maxQuoted = 128

func nameList(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return words.List(names, 20)
}

// glob is a pattern as an expression. Names of contexts have slashes, which * matches too.
func glob(pattern string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(pattern)
	return regexp.MustCompile("(?s)^" + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(quoted) + "$")
}

// configured is a member of a configuration that may be unusable.
func configured(of fleet.Cluster, load func() (*rest.Config, error), connect Connect, flags ...string) Member {
	config, err := load()
	var member Member
	if err != nil {
		member = failed(of, failure("KubeconfigInvalid", err))
	} else {
		member = direct(of, config, connect)
	}
	member.Flags = flags
	return member
}

// Kubeconfigs are the clusters of the current contexts of kubeconfigs: of each file, and of each
// file of a directory, but for those whose names begin with a dot, by name. load makes the
// configuration of a file. A path that cannot be read, or a directory without a file, is an
// *input.Error.
func Kubeconfigs(paths []string, load func(path string) (*rest.Config, error), connect Connect) ([]Member, error) {
	files, err := listed(paths, func(entry os.DirEntry) bool { return !entry.IsDir() })
	if err != nil {
		return nil, err
	}
	members := make([]Member, 0, len(files))
	for _, path := range files {
		of := fleet.Cluster{Name: nameOf(path), Source: "kubeconfig " + path}
		members = append(members, configured(of, func() (*rest.Config, error) { return load(path) }, connect, "kubeconfig", path))
	}
	return members, limit(len(members))
}

// listed are the files of the paths, and the entries of those that are directories for which
// wanted is true, sorted.
func listed(paths []string, wanted func(os.DirEntry) bool) ([]string, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, &input.Error{Err: err}
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, &input.Error{Err: err}
		}
		before := len(files)
		for _, entry := range entries {
			if !strings.HasPrefix(entry.Name(), ".") && wanted(entry) {
				files = append(files, filepath.Join(path, entry.Name()))
			}
		}
		if len(files) == before {
			return nil, input.Errorf("the directory %s has none", words.Line(path, maxQuoted))
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// nameOf is the name of a file without its extensions.
func nameOf(path string) string {
	name := filepath.Base(path)
	for _, extension := range []string{".gz", ".xz", ".tgz", ".tar", ".zip", ".yaml", ".yml", ".json", ".kubeconfig"} {
		if short := strings.TrimSuffix(name, extension); short != "" {
			name = short
		}
	}
	return name
}

func limit(members int) error {
	if members > MaxMembers {
		return &input.Error{Err: fmt.Errorf("there are %d clusters, and at most %d are read: select fewer", members, MaxMembers)}
	}
	return nil
}

// Archives are the clusters of archives, by name: of each packed file, and of each directory and
// packed file in a directory. A file that is packed in a way which is not read is a member, too: its
// Open fails. Other files of a directory are in a notice. open reads the archive of a path.
func Archives(paths []string, open func(ctx context.Context, path string) (*cluster.Cluster, error)) (members []Member, notices []string, err error) {
	var others []string
	files, err := listed(paths, func(entry os.DirEntry) bool {
		wanted := entry.IsDir() || packed(entry.Name())
		if !wanted {
			others = append(others, entry.Name())
		}
		return wanted
	})
	if err != nil {
		return nil, nil, err
	}
	if len(others) > 0 {
		notices = append(notices, fmt.Sprintf("%s left out, whose names are not those of archives: %s", words.Count(len(others), "file"), words.List(others, maxListed)))
	}
	members = make([]Member, 0, len(files))
	for _, path := range files {
		members = append(members, Member{
			Cluster: fleet.Cluster{Name: nameOf(path), Source: "archive " + path, Archived: true}, Archived: true, Flags: []string{"archive", path},
			content: sync.OnceValue(func() string { return contentOf(path) }),
			open: func(ctx context.Context) (Connection, error) {
				reached, err := open(ctx, path)
				if err != nil {
					return Connection{}, failure("ArchiveUnreadable", err)
				}
				return Connection{Cluster: reached}, nil
			},
		})
	}
	return members, notices, limit(len(members))
}

// packed reports whether a file has the name of an archive, also of one that is packed in a way which
// is not read.
func packed(name string) bool {
	for _, extension := range []string{".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".zip", ".tar.zst", ".tzst", ".tar.bz2", ".tbz", ".tbz2", ".tar.lz4", ".7z", ".rar"} {
		if strings.HasSuffix(strings.ToLower(name), extension) {
			return true
		}
	}
	return false
}

// contentOf differs for an archive that was at the same path at another time: it is a digest of the paths,
// sizes and times of modification of the files. To read them all would take as long as to judge
// the cluster.
func contentOf(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	sum := sha256.New()
	_ = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			fmt.Fprintf(sum, "%q: %v\n", name, err)
			return nil // to open the archive reports it
		}
		info, err := entry.Info()
		if err != nil {
			fmt.Fprintf(sum, "%q: %v\n", name, err)
			return nil
		}
		fmt.Fprintf(sum, "%q %s %d %d\n", name, info.Mode(), info.Size(), info.ModTime().UnixNano())
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil))
}
