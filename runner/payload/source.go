package payload

import (
	"maps"
	"slices"
)

// ReadManifests reads manifests that are not part of a release yet, each by the
// name of its file, by the same rules and in the same bounds as those of a
// release, but for the filters: there is no cluster that they are for. Of the
// Release it fills in Jobs, Supporting and Problems alone. The error is an *Error.
func ReadManifests(files map[string][]byte) (*Release, error) {
	manifests := newManifests(nil)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := manifests.add(name, files[name]); err != nil {
			return nil, err
		}
	}
	release := &Release{}
	if err := manifests.gather(release); err != nil {
		return nil, err
	}
	return release, nil
}
