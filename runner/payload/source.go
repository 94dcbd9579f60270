package payload

import (
	"maps"
	"slices"
)

// ReadManifests reads manifests that are not part of a release yet, by
// file name, with the rules and bounds of those of a
// release, except the filters, since there is no cluster. Of the
// Release it sets only Jobs, Supporting and Problems. The error is an *Error.
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
