package roster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/fleet"
)

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
