//go:build race

package survey_test

import "time"

// addressSpace is the limit of the program under test: the race detector reserves terabytes, and needs a multiple of the memory.
const addressSpace = "unlimited"

// answerTime is that of a cluster, several times as long as without the race detector.
const answerTime = 2 * time.Minute
