# Completion of `replay` for fish; put this into ~/.config/fish/config.fish:
#   replay completion fish | source
function __replay_words
    set -l before (commandline -opc)
    set -l program $before[1]
    set -e before[1]
    set -l current (commandline -ct)
    $program completion --words -- $before "$current" 2>/dev/null
end
complete -c replay -f -a '(__replay_words)'
