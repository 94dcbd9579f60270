package health

// JudgeWindow is for fuzzing: it reads external text.
var JudgeWindow = judgeWindow
