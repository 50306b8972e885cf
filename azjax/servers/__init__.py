"""The other direction: azjax as an engine for programs that speak GTP, UCI or USI."""
