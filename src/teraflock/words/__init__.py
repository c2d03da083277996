"""How values of the API are written for people, in the terminal and in the console. Pure: `now` is passed in."""
