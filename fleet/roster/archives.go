package roster

import (
	"context"
	"os"
	"strings"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/fleet"
)

// Archives are the clusters of archives, by name: of each packed file, and of each directory and
// packed file in a directory. open reads the archive of a path.
func Archives(paths []string, open func(ctx context.Context, path string) (*cluster.Cluster, error)) ([]Member, error) {
	files, err := listed(paths, func(entry os.DirEntry) bool { return entry.IsDir() || packed(entry.Name()) })
	if err != nil {
		return nil, err
	}
	members := make([]Member, 0, len(files))
	for _, path := range files {
		members = append(members, Member{
			Cluster: fleet.Cluster{Name: nameOf(path), Source: "archive " + path}, Archived: true, Flags: []string{"archive", path},
			open: func(ctx context.Context) (Connection, error) {
				reached, err := open(ctx, path)
				if err != nil {
					return Connection{}, &Failure{Err: err, Reason: "ArchiveUnreadable", Remedy: "Gather the archive again, or leave it out."}
				}
				return Connection{Cluster: reached}, nil
			},
		})
	}
	return members, limit(len(members))
}

// packed reports whether a file has the name of an archive.
func packed(name string) bool {
	for _, extension := range []string{".tar", ".tar.gz", ".tgz", ".tar.xz", ".zip"} {
		if strings.HasSuffix(strings.ToLower(name), extension) {
			return true
		}
	}
	return false
}
