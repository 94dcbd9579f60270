package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/cache"
	"github.com/openshift/update-preflight/runner/imagefiles"
	"github.com/openshift/update-preflight/runner/registry"
)

// pullFlags are the flags for reading images.
type pullFlags struct {
	cacheDirectory string
	noCache        bool
}

func (f *pullFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.cacheDirectory, "cache-dir", "", "Directory for the content of releases; its digests are verified at each use. Default: oc-preflight in the user's cache directory.")
	c.Flags().BoolVar(&f.noCache, "no-cache", false, "Read releases from the registry only, and cache nothing.")
}

func (f *pullFlags) validate() error {
	if f.noCache && f.cacheDirectory != "" {
		return errors.New("--no-cache and --cache-dir exclude each other")
	}
	return nil
}

// cache opens the cache; nil is none. For a directory that the user did not name, a
// failure is only a warning.
func (f *pullFlags) cache(client *client) (imagefiles.Cache, error) {
	return openCache(f, client, "releases are not cached", func(path string) (imagefiles.Cache, error) {
		return cache.Open(path, cache.DefaultLimit)
	})
}

// graphs opens the store of graphs, as cache does.
func (f *pullFlags) graphs(client *client) (runner.GraphStore, error) {
	return openCache(f, client, "graphs are not stored", func(path string) (runner.GraphStore, error) {
		return cache.OpenGraphs(path)
	})
}

// openCache opens a store in the directory of the cache; the zero value is none.
func openCache[T any](f *pullFlags, client *client, warning string, open func(path string) (T, error)) (none T, err error) {
	if f.noCache {
		return none, nil
	}
	path := f.cacheDirectory
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
	case f.cacheDirectory != "":
		return none, usageError(fmt.Errorf("--cache-dir: %w", err))
	}
	fmt.Fprintf(client.streams.ErrOut, "warning: %s: %v\n", warning, err)
	return none, nil
}

// local are the credentials of podman and docker on this machine, in the files of
// containers-auth.json(5).
func local() registry.Local {
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
