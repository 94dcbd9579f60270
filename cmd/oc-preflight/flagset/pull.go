package flagset

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/collector/updateplan/updateservice"
	"github.com/openshift/update-preflight/runner/cache"
	"github.com/openshift/update-preflight/runner/payload/imagefiles"
	"github.com/openshift/update-preflight/runner/registry"
)

// Pull are the flags for reading images.
type Pull struct {
	CacheDirectory string
	NoCache        bool
}

// Add adds --cache-dir and --no-cache to the command.
func (f *Pull) Add(c *cobra.Command) {
	c.Flags().StringVar(&f.CacheDirectory, "cache-dir", "", "Directory for the content of releases; its digests are verified at each use. Default: oc-preflight in the user's cache directory.")
	c.Flags().BoolVar(&f.NoCache, "no-cache", false, "Cache nothing: read releases from the registry only.")
	option.Declare(c.Flags(), option.Option{Group: option.Advanced, Effect: option.OnDisplay}, "cache-dir", "no-cache") // digests are verified at each use
}

// Cache opens the cache; nil is none. For a directory that the user did not name, a
// failure is only a warning.
func (f *Pull) Cache(client *cli.Client) (imagefiles.Cache, error) {
	return openCache(f, client, "releases are not cached", func(path string) (imagefiles.Cache, error) {
		return cache.Open(path, cache.DefaultLimit)
	})
}

// graphs opens the store of graphs, as cache does.
func (f *Pull) graphs(client *cli.Client) (updateservice.Store, error) {
	return openCache(f, client, "graphs are not stored", func(path string) (updateservice.Store, error) {
		return cache.OpenGraphs(path)
	})
}

// openCache opens a store in the directory of the cache; the zero value is none.
func openCache[T any](f *Pull, client *cli.Client, warning string, open func(path string) (T, error)) (none T, err error) {
	if f.NoCache {
		return none, nil
	}
	path := f.CacheDirectory
	if path == "" {
		directory, err := os.UserCacheDir()
		if err != nil {
			return none, nil //nolint:nilerr // without a home directory there is no default cache
		}
		path = filepath.Join(directory, "oc-preflight")
	}
	opened, err := open(path)
	switch {
	case err == nil:
		return opened, nil
	case f.CacheDirectory != "":
		return none, exitcode.BadUsage(fmt.Errorf("--cache-dir: %w", err))
	}
	fmt.Fprintf(client.Streams.ErrOut, "warning: %s: %v\n", warning, err)
	return none, nil
}

// Local are the credentials of podman and docker on this machine, in the files of
// containers-auth.json(5).
func Local() registry.Local {
	if path := os.Getenv("REGISTRY_AUTH_FILE"); path != "" {
		return registry.Local{AuthFiles: []string{path}}
	}
	var paths []string
	if directory := os.Getenv("XDG_RUNTIME_DIR"); directory != "" {
		paths = append(paths, filepath.Join(directory, "containers", "auth.json"))
	}
	paths = append(paths, filepath.Join("/run/containers", strconv.Itoa(os.Getuid()), "auth.json"))
	if directory, err := os.UserConfigDir(); err == nil {
		paths = append(paths, filepath.Join(directory, "containers", "auth.json"))
	}
	if directory := os.Getenv("DOCKER_CONFIG"); directory != "" {
		paths = append(paths, filepath.Join(directory, "config.json"))
	} else if directory, err := os.UserHomeDir(); err == nil {
		paths = append(paths, filepath.Join(directory, ".docker", "config.json"))
	}
	return registry.Local{AuthFiles: paths}
}
